"""Tools that only some protocols know, in words that all share; and what a protocol must tell of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman._json import Json, Raw
from dragoman.events import Deviation
from dragoman.types import Native, Opaque, Request, Tool, ToolCall

#: Who runs a tool: the client, as it runs functions, or the provider.
Runner: TypeAlias = Literal["client", "provider"]
#: The kinds of tools that a policy may name.
KINDS: Final = (
    "custom", "bash", "text_editor", "memory", "computer", "shell", "local_shell", "apply_patch", "tool_search",
    "web_search", "web_fetch", "code_execution", "file_search", "mcp", "image_generation", "maps", "other",
)  # fmt: skip


@final
class RemoteServer(msgspec.Struct, frozen=True):
    """An MCP server that the provider asks, without anybody's approval. `token`: of a bearer; `headers`: further ones.
    `allowed`: of its tools, these; None: all. It may hold keys: `repr` shows none."""

    name: str
    url: str
    token: str = ""
    headers: dict[str, str] = {}
    allowed: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return "RemoteServer(…)"

    def with_token(self) -> RemoteServer:
        """The same with the token of an `authorization` header as its token."""
        name = next((name for name in self.headers if name.lower() == "authorization"), "")
        scheme, _, token = self.headers.get(name, "").partition(" ")
        if self.token or scheme.lower() != "bearer":
            return self
        rest = {key: value for key, value in self.headers.items() if key != name}
        return msgspec.structs.replace(self, token=token.strip(), headers=rest)


@final
class NativeTool(msgspec.Struct, frozen=True):
    """A tool of a request that is no function.

    `kind`: one of `KINDS`; `name`: what messages call it; `where`: its place in the request. `function`: what stands
    for it where it is not known, with its published schema; None: nothing can. `settings`: of what a provider runs
    (`allowed_domains`, `blocked_domains`, `user_location`, `max_uses`, `search_context_size`; of files `stores` and
    `max_results`; of images `aspect`, as "3:2"). `server`: of kind "mcp". `unsaid`: its other
    fields, which only its protocol knows. `bound`: why no other protocol can say it without allowing more; "" if one
    can.
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


@final
class Opened(msgspec.Struct, frozen=True):
    """A request with all that its protocol alone knows of tools said in words that all share.

    `request`: its native fields hold no tools and no tool choice any more. `tools`: those that are no functions.
    `forced`: the name of one of these that must be called; "" without one. `forms`: by a tool's name, what calls of it
    carry for the client.
    """

    request: Request
    tools: tuple[NativeTool, ...] = ()
    forced: str = ""
    forms: dict[str, Native] = {}
    deviations: tuple[Deviation, ...] = ()


@final
class Written(msgspec.Struct, frozen=True):
    """A tool that the provider runs, in a protocol's words. `tool`: its entry among the tools; None: it has none.
    `beside`: fields of the body that belong to it, lists of what several tools say. `unsaid`: settings that these words
    have no place for."""

    tool: Raw | None
    choice: Raw | None = None
    unsaid: tuple[str, ...] = ()
    beside: dict[str, Json] = {}


@final
class SchemaRules(msgspec.Struct, frozen=True, gc=False):
    """What a vendor wants of a tool's schema beyond JSON schema itself.

    `is_object_rooted`: the root's type is object. `has_plain_root`: no union stands there; None: where the host checks
    schemas. `names_members`: `properties` stand at the root, and `items` in each list. `key`: what an argument may be
    called. `references`: to anywhere, to the root's `$defs`, or none. `is_objects`: no schema is true or false.
    """

    is_object_rooted: bool = True
    has_plain_root: bool | None = False
    names_members: bool = False
    key: re.Pattern[str] | None = None
    references: Literal["any", "defs", "none"] = "any"
    is_objects: bool = False


@final
class ToolForms(msgspec.Struct, frozen=True):
    """What a protocol tells of its tools.

    `name`: what a tool may be called. `keeps_custom`: tools that take free text are part of the protocol wherever it
    is spoken. `open_request`: makes a request ready for another protocol. `write_call`: a call of a client's tool of a
    kind, as its clients read it; None: as any call. `write_tool`: a tool that providers run; None: the protocol has
    none of the kind. `restate`: says what another provider's tools did earlier in the protocol's words, and names what
    it cannot say. `schema`: what its vendor wants of schemas.
    """

    name: re.Pattern[str]
    longest_name: int
    keeps_custom: bool = False
    open_request: Callable[[Request], Opened] | None = None
    write_call: Callable[[str, ToolCall], Opaque | None] | None = None
    write_tool: Callable[[NativeTool], Written | None] | None = None
    restate: Callable[[Request], tuple[Request, list[Deviation]]] | None = None
    schema: SchemaRules = SchemaRules()


ANY_NAME: Final = ToolForms(re.compile(r"[A-Za-z0-9_.:/-]+"), 256)
