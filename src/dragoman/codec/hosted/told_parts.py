"""Translate parts by which a provider reports what its own tools did: images, calls of MCP servers, searches."""

from __future__ import annotations

from typing import final

from dragoman.codec.counterparts import as_image, kind_of, takes_media
from dragoman.codec.hosted.citations import Citation, CitationForm
from dragoman.codec.hosted.found_files import FoundFile, read_call
from dragoman.codec.hosted.remote_calls import Begun, RemoteCall, RemoteCalls
from dragoman.codec.hosted.searches import Searches
from dragoman.codec.lost_places import lose
from dragoman.events import Deviation, PartEvent
from dragoman.types import Opaque, ProtocolName


@final
class ToldParts:
    """Such parts of one answer, translated into `protocol`.

    `form`: how the protocol reports them, or None. `lost`: gets a note for each path that cannot be expressed.

    Attributes:
        further: parts to write behind the one that was taken last.
        pages, queries: of web searches, for the end of the answer.
        files, file_queries: the same of files.
    """

    __slots__ = (
        "_calls", "_form", "_lost", "_protocol", "_remotes", "_searches", "file_queries", "files", "further", "pages",
        "queries",
    )  # fmt: skip

    def __init__(self, protocol: ProtocolName | None, form: CitationForm | None, lost: list[Deviation]) -> None:
        self._protocol = protocol
        self._form = form
        self._lost = lost
        self._remotes: dict[str, int] = {}  # calls of MCP servers without a result so far, and their parts
        self._calls = RemoteCalls()
        self._searches: Searches | None = None
        self.further: list[Opaque] = []
        self.pages: list[Citation] = []
        self.queries: list[str] = []
        self.files: list[FoundFile] = []
        self.file_queries: list[str] = []

    def take(self, event: PartEvent) -> PartEvent | None:
        """Return the part in the protocol's form, or None if it cannot be expressed.

        A part that the protocol reports elsewhere stays as it is, because no encoder writes another protocol's part.
        """
        self.further = []
        part = event.part
        if type(part) is not Opaque or part.protocol == self._protocol:
            return None
        form = self._form
        made = self._image(event, part)
        if made is not None or form is None or self._protocol is None:
            return made
        if form.render_remote is not None and (made := self._remote(event, part)) is not None:
            return made
        if form.has_files and (made := self._files(event, part)) is not None:
            return made
        return self._search(event, part) if form.render is None or form.render_search is not None else None

    def end(self) -> None:
        """Name the calls of MCP servers whose results never came."""
        for index in self._remotes.values():
            self._lose(f"parts[{index}]", "mcp_tool_use")
        self._remotes = {}

    def _lose(self, where: str, seen: str) -> bool:
        return lose(self._lost, where, seen)

    def _lose_all(self, event: PartEvent, part: Opaque, paths: tuple[str, ...] | list[str]) -> None:
        place = f"parts[{event.index}].<{kind_of(part.raw)}>" if paths else ""
        for path in paths:
            if not self._lose(f"{place}.{path}", f"{part.protocol}'s own"):
                return

    def _image(self, event: PartEvent, part: Opaque) -> PartEvent | None:
        """Return an image that a tool made in the protocol's form for images, if it has one."""
        made = as_image(part.raw)
        if made is None or not takes_media(self._protocol, made[0]):
            return None
        self._lose_all(event, part, made[1])
        return PartEvent(event.index, made[0])

    def _remote(self, event: PartEvent, part: Opaque) -> PartEvent | None:
        remote = self._calls.take(part.raw)
        if remote is None or self._form is None or self._form.render_remote is None or self._protocol is None:
            return None
        self._lose_all(event, part, remote.besides)
        if isinstance(remote, Begun):
            self._remotes[remote.id] = event.index
            return event
        if isinstance(remote, RemoteCall):
            self._remotes.pop(remote.id, None)
        first, *rest = [Opaque(self._protocol, raw) for raw in self._form.render_remote(remote)]
        self.further = rest
        return PartEvent(event.index, first)

    def _files(self, event: PartEvent, part: Opaque) -> PartEvent | None:
        found = read_call(part.raw)
        if found is None:
            return None
        self._lose_all(event, part, found.besides)
        self.files += found.files
        self.file_queries += found.queries
        return event

    def _search(self, event: PartEvent, part: Opaque) -> PartEvent | None:
        self._searches = self._searches or Searches()
        search = self._searches.take(part.raw)
        if search is None or self._form is None or self._protocol is None:
            return None
        self._lose_all(event, part, search.besides)
        if not search.query and not search.pages:
            return event
        if self._form.render_search is not None:  # by their addresses alone
            if any(page.title for page in search.pages):
                self._lose(f"parts[{event.index}].content[].title", f"{part.protocol}'s own")
            raw = self._form.render_search(search.query, search.pages)
            return PartEvent(event.index, Opaque(self._protocol, raw))
        self.pages += search.pages
        self.queries += [search.query] if search.query else []
        return event
