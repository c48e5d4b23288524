"""The interface of a protocol: a record of callables, and the values that pass between them.

No base class carries behaviour. A protocol's folder fills in one `Protocol`; a provider's differences within a protocol
are a `Dialect` (data).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, final
from typing import Protocol as Interface

import msgspec

from dragoman._json import Raw
from dragoman.bounds import AnswerBounds
from dragoman.events import Deviation, Event, Failure, Finish, Reply
from dragoman.protocol.dialect import ANY_TURNS as ANY_TURNS
from dragoman.protocol.dialect import PLAIN as PLAIN
from dragoman.protocol.dialect import UNKNOWN_MODEL as UNKNOWN_MODEL
from dragoman.protocol.dialect import Dialect as Dialect
from dragoman.protocol.dialect import ModelLimits as ModelLimits
from dragoman.protocol.dialect import TurnRules as TurnRules
from dragoman.protocol.hosted_path import HostedPath as HostedPath
from dragoman.protocol.model_pages import LoadModelPages
from dragoman.protocol.native_tools import ANY_NAME, ToolForms
from dragoman.secret import name_alone
from dragoman.types import ProtocolName, Request

#: Makes 24 letters and digits, unique across responses. Protocols put their own prefix before it (`call_`, `msg_`, …).
NewId: TypeAlias = Callable[[], str]
#: Whether the first deviation of a response is a failure; "notes": one of severity "note" too.
Strictness: TypeAlias = bool | Literal["notes"]
#: Whether a call of this tool, by its name, may have no arguments; of a tool that is not known it may.
TakesNothing: TypeAlias = Callable[[str], bool]
#: How tools are asked for: in the protocol's own fields, through structured output, or in words.
ToolMode: TypeAlias = Literal["native", "schema", "prompted"]


def takes_nothing(name: str) -> bool:
    """Return True: no tool is known, so each may be called without arguments. A `TakesNothing`."""
    return True


@final
class Expectation(msgspec.Struct, frozen=True):
    """Facts about a request without which its answer would look odd.

    Attributes:
        deviations: pairs of a code and a place that are no deviations in this answer; a place of "" is any.
        tools: tools found by a search, which may be called beside those that were offered.
    """

    deviations: frozenset[tuple[str, str]] = frozenset()
    tools: frozenset[str] = frozenset()

    def explains(self, deviation: Deviation) -> bool:
        """Return whether the request explains a deviation."""
        code = deviation.code
        if code == "unknown-tool":
            return deviation.seen.partition(";")[0] in self.tools
        return (code, deviation.where) in self.deviations or (code, "") in self.deviations


NOTHING_EXPECTED = Expectation()


@final
class HttpRequest(msgspec.Struct, frozen=True):
    """A request to a provider. `path` is relative to the provider's base URL and begins with "/".

    `headers` holds what the protocol needs; the owner of the keys adds them.
    """

    __repr__ = name_alone

    path: str
    body: bytes
    headers: dict[str, str] = {}
    method: str = "POST"


@final
class Rendered(msgspec.Struct, frozen=True):
    """A request in a protocol's form, what it could not express, and what its answer may contain."""

    http: HttpRequest
    deviations: tuple[Deviation, ...] = ()
    expectation: Expectation = NOTHING_EXPECTED


@final
class ReplyStyle(msgspec.Struct, frozen=True):
    """The form in which the client wants its answer, from its request and the configuration.

    Attributes:
        include_usage: OpenAI Chat's usage chunk.
        array: Gemini without `alt=sse`.
        bare_calls: Ollama calls with the `function` key alone (old Zed).
        batch_calls: all Ollama calls in one chunk (litellm).
        echo: request fields that the response repeats.
        id: the answer's id, in place of the provider's (both Responses).
        knows_servers: it named MCP servers, so it reads the blocks of their calls, which a beta of Messages has.
    """

    include_usage: bool = True
    array: bool = False
    bare_calls: bool = False
    batch_calls: bool = False
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    echo: dict[str, Raw] = {}
    id: str | None = None
    knows_servers: bool = False


@final
class Parsed(msgspec.Struct, frozen=True):
    """A client's request, and what of it was odd or could not be read."""

    request: Request
    style: ReplyStyle = ReplyStyle()
    deviations: tuple[Deviation, ...] = ()


@final
class Peek(msgspec.Struct, frozen=True):
    """The facts about a request that are needed before its bytes are passed on to a target of the same protocol.

    Attributes:
        fields: those of the body, as their JSON texts.
        names_model: one of them is the model's name, as "model".
        usage: fields that ask for usage in the stream, if the client did not; the frame that answers them is not for
            the client.
        max_tokens: for the record.
        expectation: what it asks for besides what its `fields` say.
    """

    model: str
    stream: bool
    fields: dict[str, Raw] = {}
    names_model: bool = True
    usage: dict[str, object] = {}
    max_tokens: int | None = None
    expectation: Expectation = NOTHING_EXPECTED


class Decoder(Interface):
    """Decodes response bytes into events. Never raises on any bytes; the same events however the bytes are cut."""

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes (any cut)."""
        ...

    def close(self) -> list[Event]:
        """End the body. Return exactly one terminal event at the end, unless one was returned before."""
        ...

    def fail(self, failure: Failure) -> list[Event]:
        """End a broken connection. Return this failure last, or as `close` if the protocol's own end was seen."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the protocol's own end was seen: only usage may follow, so the body's end is not waited for long."""
        ...


class Encoder(Interface):
    """Encodes events as response bytes. One part is open at a time."""

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return these events in the protocol's form."""
        ...

    def keepalive(self) -> bytes:
        """Return bytes that keep a silent connection open without saying anything."""
        ...

    @property
    def aborted(self) -> bool:
        """Whether the connection must be cut after these bytes, not ended: a call that began to leave has failed."""
        ...

    @property
    def lost(self) -> Sequence[Deviation]:
        """What of the answer so far the protocol cannot express: a note for each field, with its path."""
        ...


class Stage(Interface):
    """Transforms events; holds back only what it must."""

    @property
    def handles(self) -> frozenset[type]:
        """The kinds of events that it must see now; others may bypass it. This may change when `feed` has seen several
        events, or has changed one.
        """
        ...

    @property
    def acts_on(self) -> frozenset[type]:
        """The kinds of events that it acts on: an answer that comes at once and has none of them stays as it is."""
        ...

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events; return the same list if nothing changes. The terminal event flushes what is held."""
        ...


class MakeDecoder(Interface):
    """Creates a decoder for one response.

    Args:
        offered_names: the tools of the request; they decide where a name sent in pieces ends.
        takes_nothing: which of them take no arguments; it decides whether a call is still waiting for some.
        bounds: of the response.
    """

    def __call__(
        self,
        *,
        new_id: NewId,
        offered_names: frozenset[str] = ...,
        takes_nothing: TakesNothing = ...,
        dialect: Dialect = ...,
        bounds: AnswerBounds = ...,
    ) -> Decoder: ...


class MakeEncoder(Interface):
    """Creates an encoder for one response. `model` is the name the client asked for, `created` Unix seconds."""

    def __call__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = ...) -> Encoder: ...


class ParseRequest(Interface):
    """Parses a client's request.

    Args:
        path: the request's path with its query (Gemini names model and verb there).
        fields: those of the body, if they were read before.

    Raises:
        WireError: the body is not this protocol.
    """

    def __call__(self, body: bytes, *, path: str = ..., fields: dict[str, Raw] | None = ...) -> Parsed: ...


class PeekAtRequest(Interface):
    """Inspects a client's request without parsing it. None: it cannot pass as it is, or cannot be read."""

    def __call__(self, body: bytes, *, path: str = ...) -> Peek | None: ...


class ReadWhole(Interface):
    """Reads the body of a usual whole answer with no more than it has: the events that its decoder returns.

    None: only the decoder can tell.
    """

    def __call__(
        self, data: bytes, *, offered_names: Collection[str], bounds: AnswerBounds, new_id: NewId
    ) -> list[Event] | None: ...


class CheckWhole(Interface):
    """Inspects the body of a whole answer without parsing it: how it ended.

    None: something in it breaks the protocol, or only parsing can tell.
    """

    def __call__(self, body: bytes) -> Finish | None: ...


class ExpectAnswer(Interface):
    """Derives from the fields of a request, as received or sent, what its answer may contain."""

    def __call__(self, fields: dict[str, Raw]) -> Expectation: ...


def expect_nothing(fields: dict[str, Raw]) -> Expectation:
    """Return no expectation, for a protocol whose answers are never odd, whatever is asked."""
    return NOTHING_EXPECTED


#: Tells of a request of this protocol, which is sent to it, whether its own bytes say what would be rendered.
GoesAsCame: TypeAlias = Callable[[Request], bool]


def never(request: Request) -> bool:
    """Return False, for a protocol whose requests are always rewritten. A `GoesAsCame`."""
    return False


class RenderRequest(Interface):
    """Renders a request for a provider."""

    def __call__(self, request: Request, *, dialect: Dialect = ..., limits: ModelLimits = ...) -> Rendered: ...


class ParseError(Interface):
    """Parses the body of a response with an error status (any body: JSON of any shape, HTML, nothing)."""

    def __call__(self, status: int, body: bytes, *, headers: Mapping[str, str] = ...) -> Failure: ...


class RenderResponse(Interface):
    """Renders a whole (non-streamed) response. A reply with a `Failure` is rendered by `render_error` instead.

    `lost` is called with a note for each field of the answer that the protocol cannot express, with its path.
    """

    def __call__(
        self,
        reply: Reply,
        *,
        new_id: NewId,
        model: str,
        created: int,
        style: ReplyStyle = ...,
        lost: list[Deviation] | None = ...,
    ) -> bytes: ...


class RenderError(Interface):
    """Renders a failure before the first byte: HTTP status and body in the client's own form."""

    def __call__(self, failure: Failure) -> tuple[int, bytes]: ...


#: The style of an answer for a client, by its user agent; the same object where the client has none of its own.
StyleFor: TypeAlias = Callable[[str, ReplyStyle], ReplyStyle]


def usual_style(user_agent: str, style: ReplyStyle) -> ReplyStyle:
    """Return the style unchanged, for a protocol that all clients read alike. A `StyleFor`."""
    return style


#: Whole frames of a stream that passes → the same without a frame that has nothing but usage.
WithoutUsage: TypeAlias = Callable[[bytes], bytes]


@final
class Sibling(msgspec.Struct, frozen=True):
    """Another protocol whose requests come to this one's path: bodies with the field `has` and without `lacks`."""

    name: ProtocolName
    has: str
    lacks: str


@final
class Protocol(msgspec.Struct, frozen=True):
    """One wire protocol, both directions.

    Attributes:
        routes: (method, path pattern) that the gateway serves with `parse_request`.
        models_path: where a server lists its models, below its base URL.
        model_pages: loads what the gateway serves beside the chat: such lists, and the length of a prompt.
        stream_type: the content type of its streams.
        truncates_silently: its servers cut a prompt that is too long without an error.
        takes_image_urls: they fetch an image that is named by its address.
        tells_failed_calls: its answers can report failed calls, so that one without a good call is an answer, not an
            error.
        peek, check_whole: for bytes that pass.
        read_whole: a quick way for a usual whole answer.
        goes_as_came: whether a client's request that was not changed for its target is sent as it came.
        id_header: its clients' header for the id of a request, beside `x-request-id`.
        style_for: clients that read answers in a form of their own.
        without_usage: for a protocol whose streams report usage only if asked (`Peek.usage`).
        takes_result_media: a tool result may contain images; otherwise they follow in a message of the user.
        seals_thinking: its servers sign thinking, and take it back with the signature alone.
        turns: the turns that it accepts from a client of another protocol.
        sibling: the protocol whose requests clients send to this one's path.
        hosted_paths: where clouds serve it.
        tools: its forms of tools.
        address_variable, address_path: the variable in which its clients look for their server's address, and what
        follows host and port there.
        end_marks: the frame that ends a stream contains one of these; none if no frame does.
        stop_mark: the same for a frame before it that gives the stop reason; such bytes stand in no text.
        marks_cache: a request may say how long a provider keeps a part of it.
        output_limits: where a request limits the answer's tokens, each as a path of names.
    """

    name: ProtocolName
    routes: tuple[tuple[str, str], ...]
    models_path: str
    model_pages: LoadModelPages
    address_variable: str
    stream_type: str
    parse_request: ParseRequest
    render_request: RenderRequest
    decoder: MakeDecoder
    parse_error: ParseError
    encoder: MakeEncoder
    render_response: RenderResponse
    render_error: RenderError
    peek: PeekAtRequest
    check_whole: CheckWhole
    read_whole: ReadWhole | None = None
    expect: ExpectAnswer = expect_nothing
    tools: ToolForms = ANY_NAME
    truncates_silently: bool = False
    takes_image_urls: bool = True
    tells_failed_calls: bool = False
    goes_as_came: GoesAsCame = never
    sibling: Sibling | None = None
    id_header: str | None = None
    style_for: StyleFor = usual_style
    without_usage: WithoutUsage | None = None
    takes_result_media: bool = True
    seals_thinking: bool = False
    turns: TurnRules = ANY_TURNS
    address_path: str = ""
    end_marks: tuple[bytes, ...] = ()
    stop_mark: re.Pattern[bytes] | None = None
    hosted_paths: tuple[HostedPath, ...] = ()
    output_limits: tuple[tuple[str, ...], ...] = ()
    marks_cache: bool = False


def no_glance(body: bytes, *, path: str = "") -> Peek | None:
    """Return None, for a form of a protocol whose requests must always be parsed."""
    return None


@final
class Legacy(msgspec.Struct, frozen=True):
    """An older form of a protocol, in which a prompt is one text.

    `path`: of the form at a provider, relative to its base URL. `unsayable` returns the field of a request that only
    such a provider can honour; "" if any model can answer it.
    """

    protocol: Protocol
    path: str
    unsayable: Callable[[bytes], str]
