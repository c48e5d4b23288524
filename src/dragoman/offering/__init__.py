"""Decide which of a request's tools a target is offered, in which form, and how its calls are converted back.

Tools that only the client's protocol knows become functions, or the target's own if it runs such tools. Other ones are
refused, or left out and named, by the policy. Every name is valid for the target and unique.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.cross_protocol_request import Crossed
from dragoman.codec.hosted.told_results import with_results_told
from dragoman.codec.json_fields import read, read_fields, read_items, read_text
from dragoman.deviations import clip
from dragoman.errors import UsageError
from dragoman.events import Deviation
from dragoman.offering.free_text import SCHEMA, described, unsaid_of, with_functions
from dragoman.offering.names import fit_names, fits
from dragoman.offering.restoring import FREE_TEXT, Form, Restored
from dragoman.offering.schemas import fitted, rules_for
from dragoman.protocol import Dialect, Protocol
from dragoman.protocol.native_tools import ANY_NAME, KINDS, NativeTool, Opened, ToolForms, Written
from dragoman.types import Message, Named, Native, Opaque, Part, ProtocolName, Request, Text, Tool, ToolCall, ToolResult

#: What becomes of a tool that the target does not know as the client says it; "run" is reserved.
ToolPolicy: TypeAlias = Literal["translate", "refuse", "drop"]
#: By kind, or by who runs it; what is not named is translated.
Policies: TypeAlias = Mapping[str, ToolPolicy]
POLICY_KEYS: Final = (*KINDS, "client", "provider")
#: The header that tells a client which of its tools the model was not offered.
DROPPED: Final = "x-dragoman-dropped"
_MOST_NAMED: Final = 20
#: Kinds of which a request may have several tools: each has its own server, or its own files.
_SEVERAL: Final = frozenset({"mcp", "file_search"})
_ODD: Final = re.compile(r"[^A-Za-z0-9_.:-]")


@final
class Offer(msgspec.Struct, frozen=True):
    """A request as a target is asked it.

    Attributes:
        dropped: the names of the tools that it is not offered.
        forms: by the name that was sent, how the client reads a call.
        writer: the client's protocol.
    """

    request: Request
    deviations: tuple[Deviation, ...] = ()
    dropped: tuple[str, ...] = ()
    forms: dict[str, Form] = {}
    writer: ToolForms = ANY_NAME

    def stages(self) -> list[Restored]:
        """Return the stages that give an answer's calls the client's form."""
        return [Restored(self.forms, self.writer)] if self.forms else []


def offer(
    request: Request,
    target: Protocol,
    *,
    name: str,
    dialect: Dialect,
    policies: Policies,
    protocols: Callable[[ProtocolName], Protocol],
    client: ProtocolName | None = None,
) -> Offer:
    """Return a request with its tools for a target.

    Args:
        name: the target's, for messages.
        client: the protocol that the request came in, or None.
        protocols: returns each protocol by name, for its own tools.

    Raises:
        UsageError: the request is for a tool that it does not offer or the target does not have, or the policy refuses
            one.
    """
    sources, called = _walked(request)
    if not sources and _is_fine(request, called, target, dialect, client):  # as most requests are
        return Offer(request, writer=target.tools)
    return _Offering(target, name, dialect, policies).offer(request, sources, protocols, client)


class _Offering:
    """Decides about one request's tools."""

    __slots__ = ("_dialect", "_name", "_policies", "_taken", "_target", "deviations", "dropped", "forms")

    def __init__(self, target: Protocol, name: str, dialect: Dialect, policies: Policies) -> None:
        self._target = target
        self._name = name
        self._dialect = dialect
        self._policies = policies
        self.deviations: list[Deviation] = []
        self.dropped: list[str] = []
        self.forms: dict[str, Form] = {}
        self._taken: set[str] = set()  # names of tools that the provider runs

    def offer(
        self,
        request: Request,
        sources: Iterable[ProtocolName],
        protocols: Callable[[ProtocolName], Protocol],
        client: ProtocolName | None,
    ) -> Offer:
        writer: ToolForms = self._target.tools
        is_own = True
        for source in sources:
            forms = protocols(source).tools
            if forms.open_request is None or (source == self._target.name and not self._dialect.only_functions):
                continue
            opened = forms.open_request(request)
            request, writer, is_own = self._opened(opened), forms, source == self._target.name
        if is_own and self._policies and request.native is not None:
            request = self._kept_own(protocols(request.native.protocol).tools, request, request.native)
        request = self._without_custom(request)
        request = self._named(request, is_own=client == self._target.name)
        if client != self._target.name:
            _check_choice(request)
            request = self._with_schemas(request)
        if self._target.tools.restate is not None:
            request, unsaid = self._target.tools.restate(request)
            self.deviations += unsaid
        request, told = with_results_told(request, self._target.name)
        self.deviations += told
        return Offer(request, tuple(self.deviations), tuple(self.dropped), self.forms, writer)

    # ------------------------------------------------------------ tools that are no functions

    def _opened(self, opened: Opened) -> Request:
        request = opened.request
        self.deviations += opened.deviations
        self.forms |= {name: Form(name, native) for name, native in opened.forms.items()}
        functions: list[Tool] = []
        written: list[Raw] = []
        beside: dict[str, Json] = {}
        choice: Raw | None = None
        lost: list[tuple[NativeTool, ToolPolicy]] = []
        for tool in self._once(opened):
            policy = self._policy(tool)
            made = self._written(tool)
            if policy == "translate" and tool.function is not None:
                function = msgspec.structs.replace(tool.function, name=tool.name)
                functions.append(function)
                self.forms.setdefault(tool.name, Form(tool.name, kind=tool.kind))
            elif policy == "translate" and made is not None:
                written += [made.tool] if made.tool is not None else []
                self._taken.add(read_text((read_fields(made.tool) or {}).get("name")))
                beside = _joined(beside, made.beside)
                if tool.name == opened.forced:
                    choice = made.choice
                    if choice is None:
                        self._say("changed", "tool_choice", f"no tool of {self._name} can be forced by its name")
                for setting in made.unsaid:
                    self._say("dropped", f"{tool.where}.{setting}", "no such field in this protocol")
            else:
                lost.append((tool, policy))
                continue
            self.deviations += [_untranslated(f"{tool.where}.{name}") for name in tool.unsaid]
        has_any = bool(request.tools or functions or written or beside)
        self._lose(lost, opened.forced, is_alone=not has_any)
        if lost and not has_any and request.tool_choice == "any":
            request = msgspec.structs.replace(request, tool_choice="auto")
        fields: dict[str, Raw] = {name: _json.raw(value) for name, value in beside.items()}
        if written:
            fields["tools"] = _json.raw(written)
            if choice is not None:
                fields["tool_choice"] = choice
        native = request.native
        if fields:
            crossed = Crossed(self._target.name, is_vendor=self._dialect.supports_vendor_fields)
            native = crossed.take(Request(request.model, (), native=native)).native
            self.deviations += crossed.deviations()
            known = native.fields if native is not None and native.protocol == self._target.name else {}
            native = Native(self._target.name, {**known, **_raised(known, fields)})
        return msgspec.structs.replace(request, tools=(*request.tools, *functions), native=native)

    def _once(self, opened: Opened) -> Sequence[NativeTool]:
        """Return the tools that are no functions, one of each kind that the provider runs: two would share a name."""
        if len(opened.tools) < 2:
            return opened.tools
        first: dict[str, NativeTool] = {}
        for tool in opened.tools:
            if self._written(tool) is not None and (tool.kind not in first or tool.name == opened.forced):
                first[tool.kind] = tool
        kept: list[NativeTool] = []
        for tool in opened.tools:
            is_again = tool.kind not in _SEVERAL and first.get(tool.kind, tool) is not tool
            if is_again and self._written(tool) is not None and self._policy(tool) == "translate":
                self._say("dropped", tool.where, f"{tool.kind}: another tool of the request is the same")
            else:
                kept.append(tool)
        return kept

    def _written(self, tool: NativeTool) -> Written | None:
        """Return a tool that the provider runs in the target's form; None if it has none, or one that allows more."""
        write = self._target.tools.write_tool
        if write is None or tool.bound or tool.kind not in self._dialect.hosted_tools:
            return None
        return write(tool)

    def _policy(self, tool: NativeTool) -> ToolPolicy:
        return self._policies.get(tool.kind) or self._policies.get(tool.runner) or "translate"

    def _setting(self, tool: NativeTool) -> str:
        return tool.kind if tool.kind in self._policies else tool.runner

    def _lose(self, lost: list[tuple[NativeTool, ToolPolicy]], forced: str, *, is_alone: bool) -> None:
        """Refuse a tool that the request is for, or that the policy refuses. Leave the others out, and name them."""
        for tool, policy in lost:
            what = tool.where
            if policy == "refuse":
                raise UsageError(f"{what}: the configuration refuses it (tool_policy.{self._setting(tool)})")
            if policy == "translate" and (is_alone or tool.name == forced):
                why = f" as the request has it, for {tool.bound}" if tool.bound else ""
                raise UsageError(
                    f"{what}: the request is for this tool, which {self._name} does not have{why}; ask a model whose"
                    f' provider runs it, or leave it out with tool_policy.{tool.kind} = "drop" on the route'
                )
        for tool, policy in lost:
            self.dropped.append(tool.name)
            why = f", for {tool.bound}" if tool.bound else ""
            why = f" by tool_policy.{self._setting(tool)}" if policy == "drop" else why
            self._say("dropped", tool.where, f"{tool.kind}: left out for {self._name}{why}")
            if tool.name == forced:
                self._say("changed", "tool_choice", f"{clip(tool.name)} is left out")

    def _kept_own(self, forms: ToolForms, request: Request, native: Native) -> Request:
        """Apply a policy that refuses or drops in the client's own protocol too."""
        tools = forms.open_request(request).tools if forms.open_request is not None else ()
        lost = {tool.name: tool for tool in tools if self._policy(tool) != "translate"}
        if not lost:
            return request
        self._lose([(tool, self._policy(tool)) for tool in lost.values()], "", is_alone=False)
        kept = [_without(read(item), lost) for item in read_items(native.fields.get("tools")) or ()]
        fields = {name: raw for name, raw in native.fields.items() if name not in lost and name != "tools"}
        if entries := [entry for entry in kept if entry]:
            fields["tools"] = _json.raw(entries)
        for tool in lost.values():  # one that stands elsewhere than among the tools
            outer, _, inner = tool.where.partition(".")
            if outer in fields and (within := read_fields(fields[outer])) is not None:
                fields[outer] = _json.raw({key: raw for key, raw in within.items() if key != inner})
        return msgspec.structs.replace(request, native=Native(native.protocol, fields))

    # ------------------------------------------------------------ tools that take free text

    def _without_custom(self, request: Request) -> Request:
        """Replace tools that take free text with functions of one argument, if the server does not know them."""
        only = self._dialect.only_functions
        keeps = self._target.tools.keeps_custom if only is None else not only
        if keeps or all(tool.kind == "function" for tool in request.tools):
            return request
        tools: list[Tool] = []
        for place, tool in enumerate(request.tools):
            if tool.kind == "function":
                tools.append(tool)
                continue
            policy = self._policies.get("custom") or self._policies.get("client") or "translate"
            if policy == "refuse":
                raise UsageError(
                    f"tools[{place}] ({clip(tool.name)}): the configuration refuses it (tool_policy.custom)"
                )
            if policy == "drop":
                self.dropped.append(tool.name)
                self._say("dropped", f"tools[{place}]", "tool_policy.custom")
                continue
            self._say("changed", f"tools[{place}]", f"free text becomes the argument {FREE_TEXT}")
            self.deviations += [_untranslated(f"tools[{place}].{name}") for name in unsaid_of(tool)]
            known = self.forms.get(tool.name)
            self.forms[tool.name] = Form(tool.name, known.native if known is not None else None, is_custom=True)
            tools.append(Tool(tool.name, described(tool), SCHEMA))
        messages = tuple([with_functions(message, self._target.name) for message in request.messages])
        return msgspec.structs.replace(request, tools=tuple(tools), messages=messages)

    # ------------------------------------------------------------ schemas

    def _with_schemas(self, request: Request) -> Request:
        """Convert schemas for the target's vendor, and arguments to names that it accepts. Name only what they lose."""
        rules = rules_for(self._target, self._dialect)
        tools = list(request.tools)
        for place, tool in enumerate(request.tools):
            made = None if tool.schema is None else fitted(tool.schema, rules)
            if made is None:
                continue
            tools[place] = msgspec.structs.replace(tool, schema=made.schema)
            if made.lost:
                self._say("dropped", f"tools[{place}].schema", f"the vendor has no {', '.join(made.lost)} there")
            if made.keys:
                where, why = f"tools[{place}].schema.properties", "names of arguments that the vendor takes"
                self.deviations.append(Deviation("changed", where, why, "note"))
                form = self.forms.get(tool.name) or Form(tool.name)
                self.forms[tool.name] = msgspec.structs.replace(form, keys=made.keys)
        return msgspec.structs.replace(request, tools=tuple(tools))

    # ------------------------------------------------------------ names

    def _named(self, request: Request, *, is_own: bool) -> Request:
        """Make names valid and unique for the target. In the client's own protocol only a repeated name changes."""
        names = [tool.name for tool in request.tools]
        offered = set(names)
        if is_own and len(offered) == len(names):
            return request
        others = [name for name in _walked(request)[1] if name not in offered]
        sent = fit_names([*names, *others], self._target.tools, self._taken)
        if sent is None:
            return request
        forms: dict[str, Form] = {}
        renamed: dict[str, str] = {}
        for name, theirs in zip([*names, *others], sent, strict=True):
            renamed.setdefault(name, theirs)
            form = self.forms.get(name)
            if form is not None or name != theirs:
                forms[theirs] = form or Form(name)
        for name, theirs in zip(others, sent[len(names) :], strict=True):
            if name != theirs:
                self.deviations.append(Deviation("changed", "messages[].name", theirs, "note"))
        self.forms = forms
        tools = [msgspec.structs.replace(tool, name=sent[place]) for place, tool in enumerate(request.tools)]
        choice = request.tool_choice
        if isinstance(choice, Named):
            choice = Named(renamed.get(choice.name, choice.name))
        messages = tuple([_renamed(message, renamed) for message in request.messages])
        for place, tool in enumerate(request.tools):
            if tool.name != sent[place]:
                self.deviations.append(Deviation("changed", f"tools[{place}].name", sent[place], "note"))
        return msgspec.structs.replace(request, tools=tuple(tools), tool_choice=choice, messages=messages)

    def _say(self, code: str, where: str, why: str) -> None:
        self.deviations.append(Deviation(code, where, why))


def _joined(fields: dict[str, Json], more: dict[str, Json]) -> dict[str, Json]:
    """Return fields merged with those of another tool: lists and objects are extended."""
    joined = dict(fields)
    for name, value in more.items():
        known = joined.get(name)
        if isinstance(known, list) and isinstance(value, list):
            joined[name] = [*known, *value]
        else:
            joined[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return joined


def _raised(known: Mapping[str, Raw], fields: Mapping[str, Raw]) -> dict[str, Raw]:
    """Return fields over known ones: objects keep their other members."""
    raised: dict[str, Raw] = {}
    for name, raw in fields.items():
        old, new = read_fields(known.get(name)), read_fields(raw)
        raised[name] = raw if old is None or new is None else _json.raw({**old, **new})
    return raised


def _without(entry: Json, names: Collection[str]) -> Json:
    """Return an entry of a list of tools without those of these names, or None if nothing is left of it."""
    if not isinstance(entry, dict) or entry.get("name") in names or entry.get("type") in names:
        return None if isinstance(entry, dict) else entry
    return {key: value for key, value in entry.items() if key not in names}


def _untranslated(where: str) -> Deviation:
    return Deviation("untranslated", where, "the client's own", "note")


def dropped_header(names: Iterable[str]) -> str:
    """Return the names of tools as the value of a header: at most 20, odd characters as underscores."""
    return ", ".join([_ODD.sub("_", name[:64]) for name in dict.fromkeys(names)][:_MOST_NAMED])


def _is_fine(
    request: Request, called: Iterable[str], target: Protocol, dialect: Dialect, client: ProtocolName | None
) -> bool:
    """Return whether a request with no native fields can be sent as it is: functions with valid names and schemas."""
    names: set[str] = set()
    for tool in request.tools:
        if tool.kind != "function":
            return False
        names.add(tool.name)
    if len(names) != len(request.tools):
        return False
    if client == target.name:
        return True
    _check_choice(request)
    rules = rules_for(target, dialect)
    for tool in request.tools:
        if tool.schema is not None and fitted(tool.schema, rules) is not None:
            return False
    return fits(names.union(called), target.tools)


def _check_choice(request: Request) -> None:
    """Refuse a choice of a tool that is not among those offered, as every vendor does; some servers call any other."""
    choice, tools = request.tool_choice, request.tools
    if isinstance(choice, Named) and tools and all(tool.name != choice.name for tool in tools):
        raise UsageError(f"tool_choice: expected the name of a tool that is offered, got {clip(choice.name)!r}")


def _walked(request: Request) -> tuple[list[ProtocolName], dict[str, None]]:
    """Return the protocols whose own fields are in a request, and the names of earlier calls and of results, each once.

    In one walk: conversations are long.
    """
    found: dict[ProtocolName, None] = {}
    names: dict[str, None] = {}
    if request.native is not None:
        found[request.native.protocol] = None
    for tool in request.tools:
        if tool.native is not None:
            found[tool.native.protocol] = None
    for message in request.messages:
        for part in message.parts:
            if type(part) is Text:
                continue
            if isinstance(part, ToolCall):
                names[part.name] = None
                if part.native is not None:
                    found[part.native.protocol] = None
            elif isinstance(part, ToolResult):
                names[part.name] = None
                for inner in part.parts:
                    if type(inner) is Opaque:
                        found[inner.protocol] = None
            elif isinstance(part, Opaque):
                found[part.protocol] = None
    names.pop("", None)
    return list(found), names


def _renamed(message: Message, names: Mapping[str, str]) -> Message:
    parts = tuple([_with_name(part, names) for part in message.parts])
    is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if is_same else msgspec.structs.replace(message, parts=parts)


def _with_name(part: Part, names: Mapping[str, str]) -> Part:
    if type(part) is not ToolCall and type(part) is not ToolResult:
        return part
    name = names.get(part.name, part.name)
    return part if name == part.name else msgspec.structs.replace(part, name=name)
