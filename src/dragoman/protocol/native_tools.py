"""Tools that only some protocols know, in a shared form, and what a protocol declares about its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman._json import Json, Raw
from dragoman.deviations import clip
from dragoman.events import Deviation
from dragoman.types import Native, Opaque, Request, Tool, ToolCall

#: Who runs a tool: the client, as it runs functions, or the provider.
Runner: TypeAlias = Literal["client", "provider"]
#: The kinds of tools that a policy may name.
KINDS: Final = (
    "custom", "bash", "text_editor", "memory", "computer", "shell", "local_shell", "apply_patch", "tool_search",
    "web_search", "web_fetch", "code_execution", "file_search", "mcp", "image_generation", "maps", "other",
)  # fmt: skip

_DOMAINS: Final = ("allowed_domains", "blocked_domains")
_OF_PLACE: Final = ("type", "city", "country", "region", "timezone")


@final
class RemoteServer(msgspec.Struct, frozen=True):
    """An MCP server that the provider calls without anyone's approval. It may contain keys: `repr` shows none.

    Attributes:
        token: of a bearer.
        headers: further ones.
        allowed: only these of its tools; None: all.
    """

    name: str
    url: str
    token: str = ""
    headers: dict[str, str] = {}
    allowed: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return "RemoteServer(…)"

    def with_token(self) -> RemoteServer:
        """Return the same server with the token of an `authorization` header as its token."""
        name = next((name for name in self.headers if name.lower() == "authorization"), "")
        scheme, _, token = self.headers.get(name, "").partition(" ")
        if self.token or scheme.lower() != "bearer":
            return self
        rest = {key: value for key, value in self.headers.items() if key != name}
        return msgspec.structs.replace(self, token=token.strip(), headers=rest)


@final
class NativeTool(msgspec.Struct, frozen=True):
    """A tool of a request that is no function.

    Attributes:
        kind: one of `KINDS`.
        name: its name in messages.
        where: its place in the request.
        function: its replacement where it is not supported, with its published schema; None: there is none.
        settings: of what a provider runs (`allowed_domains`, `blocked_domains`, `user_location`, `max_uses`,
            `search_context_size`; of files `stores` and `max_results`; of images `aspect`, as "3:2").
        server: of kind "mcp".
        unsaid: its other fields, which only its protocol knows.
        bound: why no other protocol can express it without allowing more; "" if one can.
    """

    kind: str
    name: str
    where: str
    runner: Runner = "provider"
    function: Tool | None = None
    settings: dict[str, Json] = {}
    unsaid: tuple[str, ...] = ()
    server: RemoteServer | None = None
    bound: str = ""


def unsaid(entry: dict[str, Any], *said: str) -> tuple[str, ...]:
    """Return the fields of a tool's entry that are expressed nowhere else."""
    return tuple(clip(key) for key, value in entry.items() if value is not None and key not in ("type", *said))


def read_place(value: Json, where: str) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Return where the user of a search is, in the fields that every vendor has, and the paths of the others."""
    if not isinstance(value, dict):
        return {}, () if value is None else (where,)
    place = {key: value[key] for key in _OF_PLACE if value.get(key) is not None}
    rest = tuple([f"{where}.{name}" for name in unsaid(value, *_OF_PLACE)])
    return ({"type": "approximate", **place} if place else {}), rest  # others require the type


def hosted_tool(entry: dict[str, Any], kind: str, where: str, *usual: str, runner: Runner = "provider") -> NativeTool:
    """Return a tool that OpenAI's protocols declare by its type. `usual`: fields that say what holds without them."""
    filters, domains = entry.get("filters"), {}
    if isinstance(filters, dict):
        domains = {key: filters[key] for key in _DOMAINS if filters.get(key)}
    place, elsewhere = read_place(entry.get("user_location"), "user_location")
    found = {**domains, "user_location": place, "search_context_size": entry.get("search_context_size")}
    settings = {name: value for name, value in found.items() if value}
    inner = tuple([f"filters.{name}" for name in unsaid(filters, *_DOMAINS)]) if isinstance(filters, dict) else ()
    rest = unsaid(entry, "filters", "user_location", "search_context_size", *usual)
    is_read = filters is None or isinstance(filters, dict)
    type = str(entry.get("type") or "tool")
    return NativeTool(
        kind, type, where, runner, None, settings, (*inner, *rest, *elsewhere), bound="" if is_read else "its filters"
    )


@final
class Opened(msgspec.Struct, frozen=True):
    """A request whose protocol-specific tools are in the shared form.

    Attributes:
        request: its native fields contain no tools and no tool choice any more.
        tools: those that are no functions.
        forced: the name of one of these that must be called, or "".
        forms: by a tool's name, what its calls carry for the client.
    """

    request: Request
    tools: tuple[NativeTool, ...] = ()
    forced: str = ""
    forms: dict[str, Native] = {}
    deviations: tuple[Deviation, ...] = ()


@final
class Written(msgspec.Struct, frozen=True):
    """A tool that the provider runs, in a protocol's form.

    Attributes:
        tool: its entry among the tools; None: it has none.
        beside: fields of the body that belong to it; lists combine those of several tools.
        unsaid: settings that this form has no place for.
    """

    tool: Raw | None
    choice: Raw | None = None
    unsaid: tuple[str, ...] = ()
    beside: dict[str, Json] = {}


@final
class SchemaRules(msgspec.Struct, frozen=True, gc=False):
    """A vendor's requirements on a tool's schema beyond JSON Schema itself.

    Attributes:
        is_object_rooted: the root's type is object.
        has_plain_root: the root is no union; None: if the host checks schemas.
        names_members: `properties` stand at the root, and `items` in each list.
        key: the allowed names of arguments.
        references: allowed to anywhere, to the root's `$defs`, or not at all.
        is_objects: no schema is true or false.
    """

    is_object_rooted: bool = True
    has_plain_root: bool | None = False
    names_members: bool = False
    key: re.Pattern[str] | None = None
    references: Literal["any", "defs", "none"] = "any"
    is_objects: bool = False


@final
class ToolForms(msgspec.Struct, frozen=True):
    """A protocol's declarations about tools.

    Attributes:
        name: the allowed names of tools.
        keeps_custom: tools that take free text are part of the protocol wherever it is spoken.
        open_request: prepares a request for another protocol.
        allowed: those of a request's tools that it lets be called, where it may name fewer than it offers.
        write_call: renders a call of a client's tool of a kind as its clients read it; None: as any call.
        write_tool: renders a tool that providers run; None: the protocol has none of the kind.
        restate: expresses what another provider's tools did earlier, and names what it cannot express.
        schema: its vendor's requirements on schemas.
    """

    name: re.Pattern[str]
    longest_name: int
    keeps_custom: bool = False
    open_request: Callable[[Request], Opened] | None = None
    allowed: Callable[[Request], Sequence[Tool]] | None = None
    write_call: Callable[[str, ToolCall], Opaque | None] | None = None
    write_tool: Callable[[NativeTool], Written | None] | None = None
    restate: Callable[[Request], tuple[Request, list[Deviation]]] | None = None
    schema: SchemaRules = SchemaRules()

    def callable(self, request: Request) -> tuple[Tool, ...]:
        """Return the tools that a request lets be called: a call of no other is read from a text."""
        if request.tool_choice == "none":
            return ()
        return request.tools if self.allowed is None or not request.tools else tuple(self.allowed(request))


ANY_NAME: Final = ToolForms(re.compile(r"[A-Za-z0-9_.:/-]+"), 256)
