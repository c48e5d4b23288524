"""Convert requests in the form of clouds, with the model in the path, to those of the vendor's own path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, final
from urllib.parse import unquote

from dragoman._json import Raw
from dragoman.codec.json_fields import read, read_fields
from dragoman.codec.splicing import splice_fields
from dragoman.gateway.messages import Head
from dragoman.protocol.hosted_path import HostedPath

_PLACE: Final = re.compile(r"\\\{(\w+)\\\}")


class Hosted(NamedTuple):
    """A request's path, and the model in it, or ""."""

    path: HostedPath
    model: str

    def head(self, head: Head) -> Head:
        """Return the head with the vendor's own path."""
        target = self.path.path.replace("{model}", self.model)
        return Head(head.method, f"{target}?{head.query}" if head.query else target, head.headers, head.address)

    def own(self, head: Head, body: bytes) -> tuple[Head, bytes]:
        """Return head and body in the vendor's form. A body that is no object stays as it is."""
        fields = read_fields(Raw(body))
        if fields is None:
            return head, body
        headers = dict(head.headers)
        for name, header in self.path.heads.items():
            value = read(fields.pop(name, None))
            texts = [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
            if texts:
                headers[header] = ",".join(texts)
        changes: dict[str, object] = {**self.path.adds, **dict.fromkeys(self.path.leaves)}
        if self.model and "{model}" not in self.path.path:
            changes["model"] = self.model
        return Head(head.method, head.target, headers, head.address), splice_fields(fields, changes)


@final
class HostedPaths:
    """All paths of clouds that are served."""

    __slots__ = ("_paths",)

    def __init__(self, paths: Iterable[HostedPath]) -> None:
        self._paths = [(_compiled(path.pattern), path) for path in paths]

    def __iter__(self) -> Iterator[HostedPath]:
        return (path for _, path in self._paths)

    def find(self, head: Head) -> Hosted | None:
        """Return the cloud's path of a request, or None."""
        path = unquote(head.path)
        for pattern, hosted in self._paths if head.method == "POST" else ():
            found = pattern.fullmatch(path)
            if found is not None:
                return Hosted(hosted, found.groupdict().get("model", ""))
        return None


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern. The model may contain slashes, other places may not."""
    return re.compile(_PLACE.sub(lambda place: "(?P<model>.+)" if place[1] == "model" else "[^/]+", re.escape(pattern)))
