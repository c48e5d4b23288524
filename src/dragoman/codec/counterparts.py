"""Fields that several protocols have under different names, and their translation in a request.

Only fields of equal meaning are here; all others are named as lost. Sources: the vendors' API references (read
2026-11-22).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Container, Mapping
from typing import Final, final
from urllib.parse import unquote_to_bytes

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.json_fields import Fields, read, read_fields, read_items, read_text
from dragoman.codec.patterns import rare_pattern
from dragoman.deviations import clip
from dragoman.protocol.media_types import type_of_base64
from dragoman.types import Media, Native, ProtocolName, Text

_Paths = Mapping[ProtocolName, tuple[str, ...]]
_Words = Mapping[ProtocolName, Mapping[str, str]]


@final
class Counterpart(msgspec.Struct, frozen=True):
    """One field with its path in each protocol.

    Attributes:
        words: of each protocol, a value's JSON text → a common word; a value without one has no counterpart. None: the
            value is the same everywhere.
        longest: bytes of its JSON text.
        beside: a field that must be set too.
        everywhere: protocols in which every server knows it.
        of_clients: protocols in which the model's own words have no such field.
    """

    paths: _Paths
    words: _Words | None = None
    longest: int = 1 << 20
    beside: Counterpart | None = None
    everywhere: tuple[ProtocolName, ...] = ()
    of_clients: tuple[ProtocolName, ...] = ()


_OPENAI_TIERS: Final = {
    '"default"': "standard", '"flex"': "flex", '"priority"': "priority", '"scale"': "scale", '"fast"': "fast",
}  # fmt: skip
_LIFE: Final = 66  # OpenAI takes 64 characters
_TRUE: Final = {"true": "yes"}
#: Whether the odds of tokens are asked for; Responses lists what it shall include.
_ODDS: Final = Counterpart(
    {
        "openai-chat": ("logprobs",),
        "openai-responses": ("include",),
        "gemini-generate": ("generationConfig", "responseLogprobs"),
        "ollama-chat": ("logprobs",),
    },
    {
        "openai-chat": _TRUE,
        "openai-responses": {'["message.output_text.logprobs"]': "yes"},
        "gemini-generate": _TRUE,
        "ollama-chat": _TRUE,
    },
    everywhere=("ollama-chat",),
)

#: Fields of a body, and those of a part.
OF_BODY: Final[tuple[Counterpart, ...]] = (
    Counterpart({"openai-chat": ("verbosity",), "openai-responses": ("text", "verbosity")}),
    Counterpart(
        {
            "openai-chat": ("service_tier",),
            "openai-responses": ("service_tier",),
            "anthropic-messages": ("service_tier",),
            "gemini-generate": ("serviceTier",),
        },
        {
            "openai-chat": _OPENAI_TIERS,
            "openai-responses": {**_OPENAI_TIERS, '"ultrafast"': "ultrafast"},
            "anthropic-messages": {'"standard_only"': "standard"},
            "gemini-generate": {'"standard"': "standard", '"flex"': "flex", '"priority"': "priority"},
        },
    ),
    Counterpart(
        {
            "openai-chat": ("safety_identifier",),
            "openai-responses": ("safety_identifier",),
            "anthropic-messages": ("metadata", "user_id"),
        },
        longest=_LIFE,
    ),
    Counterpart(
        {
            "openai-chat": ("modalities",),
            "gemini-generate": ("generationConfig", "responseModalities"),
        },
        {
            "openai-chat": {'["text"]': "text", '["text","audio"]': "sound", '["image","text"]': "image"},
            "gemini-generate": {'["TEXT"]': "text", '["AUDIO"]': "sound", '["TEXT","IMAGE"]': "image"},
        },
    ),
    _ODDS,
    Counterpart(
        {
            "openai-chat": ("top_logprobs",),
            "openai-responses": ("top_logprobs",),
            "gemini-generate": ("generationConfig", "logprobs"),
            "ollama-chat": ("top_logprobs",),
        },
        beside=_ODDS,
        everywhere=("ollama-chat",),
    ),
    *(
        Counterpart({"openai-chat": (name,), "openai-responses": (name,)})
        for name in ("metadata", "user", "store", "moderation", "prompt_cache_retention")
    ),
    *(
        Counterpart(
            dict.fromkeys(("openai-chat", "openai-responses"), ("prompt_cache_options", key)),
            {"openai-chat": words, "openai-responses": dict(words)},
        )
        for key, words in (
            ("mode", {'"implicit"': "implicit", '"explicit"': "explicit"}),
            ("ttl", {'"30m"': "half an hour"}),  # Responses has longer ones
        )
    ),
)
#: That a text is the model's refusal.
_REFUSAL: Final = Counterpart(
    {"openai-chat": ("refusal",), "openai-responses": ("type",)},
    {"openai-chat": {"true": "refusal"}, "openai-responses": {'"refusal"': "refusal"}},
)
#: How closely an image is looked at. No other part has it in both.
DETAIL: Final = Counterpart({"openai-chat": ("image_url", "detail"), "openai-responses": ("detail",)})
OF_PART: Final[tuple[Counterpart, ...]] = (
    DETAIL,
    Counterpart(
        {"openai-chat": ("filename",), "openai-responses": ("filename",), "anthropic-messages": ("title",)},
    ),
    Counterpart(
        {"openai-chat": ("prompt_cache_breakpoint",), "openai-responses": ("prompt_cache_breakpoint",)},
        of_clients=("openai-responses",),
    ),
    _REFUSAL,
)
#: The form of a custom tool's free text.
OF_TOOL: Final[tuple[Counterpart, ...]] = (
    Counterpart({"openai-chat": ("custom", "format", "type"), "openai-responses": ("format", "type")}),
    *(
        Counterpart({"openai-chat": ("custom", "format", "grammar", name), "openai-responses": ("format", name)})
        for name in ("syntax", "definition")
    ),
)
#: Of a function: OpenAI's own rules for strict schemas, in both its protocols.
OF_FUNCTION: Final[tuple[Counterpart, ...]] = (
    Counterpart({"openai-chat": ("function", "strict"), "openai-responses": ("strict",)}),
)
_ANSWERED: Final = {f'"{word}"': word for word in ("auto", "default", "flex", "priority", "scale")}
#: Fields of an answer. A tier that OpenAI does not have is none for its clients.
OF_ANSWER: Final[tuple[Counterpart, ...]] = (
    Counterpart(
        {
            "openai-chat": ("service_tier",),
            "openai-responses": ("service_tier",),
            "anthropic-messages": ("usage", "service_tier"),
        },
        {
            "openai-chat": _ANSWERED,
            "openai-responses": dict(_ANSWERED),
            "anthropic-messages": {'"standard"': "default", '"priority"': "priority"},
        },
    ),
)

#: Markers of Anthropic's cache, where the server of the other protocol knows them.
OF_MARKED_PART: Final[tuple[Counterpart, ...]] = (
    Counterpart({"openai-chat": ("cache_control",), "anthropic-messages": ("cache_control",)}),
)


def of_body(target: ProtocolName, *, is_vendor: bool) -> tuple[Counterpart, ...]:
    """Return the fields of a body that a server knows. `is_vendor`: it is the vendor's own host, which knows all."""
    return OF_BODY if is_vendor else tuple(each for each in OF_BODY if target in each.everywhere)


def take(
    fields: Fields, source: ProtocolName, target: ProtocolName, known: tuple[Counterpart, ...]
) -> tuple[Fields, Fields]:
    """Return those of `fields` that the target has, in its form, and the rest."""
    said: dict[str, Json] = {}
    rest = fields
    for counterpart in known:
        here, there = counterpart.paths.get(source), counterpart.paths.get(target)
        if here is None or there is None or here[0] not in rest:
            continue
        if counterpart.beside is not None and not _holds(said, counterpart.beside.paths[target]):
            continue
        value, left = _without(rest, here)
        word = None if value is None else _reworded(counterpart, value, source, target)
        if word is not None:
            rest = left
            _put(said, there, word)
    return {name: _json.raw(inner) for name, inner in said.items()}, rest


def _reworded(counterpart: Counterpart, value: Raw, source: ProtocolName, target: ProtocolName) -> Raw | None:
    if counterpart.words is None or counterpart.words[source] is counterpart.words[target]:
        return value if len(value) <= counterpart.longest else None
    if len(value) > counterpart.longest:
        return None
    meant = counterpart.words[source].get(_json.raw_text(_json.raw(read(value))))
    words = (text for text, word in counterpart.words[target].items() if word == meant)
    found = next(words, None)
    return None if found is None else Raw(found.encode())


def _without(fields: Fields, path: tuple[str, ...]) -> tuple[Raw | None, Fields]:
    """Return the value at a path, and the fields without it."""
    name, *further = path
    rest = {key: value for key, value in fields.items() if key != name}
    if not further:
        return fields[name], rest
    inner = read_fields(fields[name])
    if inner is None or further[0] not in inner:
        return None, fields
    value, left = _without(inner, tuple(further))
    if left:
        rest[name] = _json.raw(left)
    return value, rest


def _holds(said: dict[str, Json], path: tuple[str, ...]) -> bool:
    inner: Json = said
    for name in path:
        inner = inner.get(name) if isinstance(inner, dict) else None
    return inner is not None


def _put(said: dict[str, Json], path: tuple[str, ...], value: Raw) -> None:
    for name in path[:-1]:
        said = said.setdefault(name, {})
    said[path[-1]] = value


def as_text(part: Raw, protocol: ProtocolName) -> tuple[str, Text, tuple[str, ...]] | None:
    """Return a protocol-specific part as a text: its type, the text, and the fields that the text does not contain.

    None: nothing of it can be read.
    """
    fields = read_fields(part) or {}
    kind = read_text(fields.get("type"))
    told = _TEXTS.get(protocol, {}).get(kind)
    if told is None:
        return None
    words = [read_text(fields.get(name)) for name in told[:-1]]
    unsaid = [name for name in fields if name != "type" and name not in told]
    content = _content(fields.get(told[-1]), told[-1], unsaid)
    if not content:
        return None
    return kind, Text("\n".join([*filter(None, words), content])), tuple(unsaid)


def as_image(part: Raw) -> tuple[Media, tuple[str, ...]] | None:
    """Return the image in an item that the provider made, and the item's other fields, or None if none is finished."""
    fields = read_fields(part) or {}
    data = read_text(fields.get("result"))
    if read_text(fields.get("type")) != _IMAGE or read_text(fields.get("status")) != "completed" or not data:
        return None
    form = read_text(fields.get("output_format")) or "png"
    image = Media("image", "image/svg+xml" if form == "svg" else f"image/{form}", data)
    return image, tuple(name for name, value in fields.items() if name not in _OF_IMAGE and bytes(value) != b"null")


def sound_form(media: Media) -> str:
    """Return OpenAI's name of a sound's format: `mp3`, `wav`."""
    form = (told_type(media) or "audio/wav").partition("/")[2].removeprefix("x-")
    return "mp3" if form == "mpeg" else form


def takes_media(protocol: ProtocolName | None, media: Media) -> bool:
    """Return whether answers of a protocol can contain a file.

    Messages cannot, and Ollama's own client refuses an answer with an image, so Ollama's clients get only files from a
    server of their own protocol.
    """
    if media.native is not None and media.native.protocol == protocol:
        return True
    return (media.kind, media.data is not None) in _MEDIA.get(protocol, ())


def of_client(media: Media, protocol: ProtocolName) -> Media:
    """Return a client's file as data if its address has them, and with its protocol if only a vendor can read it, who
    keeps it.
    """
    media = with_data(media)
    if media.native is not None or media.url is None or _KEPT.match(media.url) is None:
        return media
    return msgspec.structs.replace(media, native=Native(protocol, {}))


def is_video_page(url: str | None) -> bool:
    """Return whether an address is a video's page at YouTube, which is no file."""
    return url is not None and _PAGES.match(url) is not None


def with_data(media: Media) -> Media:
    """Return a file as data if its address is their `data:` address (RFC 2397, and as browsers read it: blanks before
    `base64`, escapes in it).
    """
    url = media.url or ""
    if url[:5].lower() != "data:" or (comma := url.find(",")) < 0:
        return media
    head, data = url[5:comma], url[comma + 1 :]
    mime = media.mime or head.partition(";")[0].strip() or None
    _, is_told, last = head.rpartition(";")
    if is_told and last.strip().lower() == "base64":
        data = _unquoted(data).decode("utf-8", "replace") if "%" in data else data
    else:  # percent-encoded bytes, of a plain text if nothing is told
        mime, data = mime or "text/plain", base64.b64encode(_unquoted(data)).decode()
    return msgspec.structs.replace(media, mime=mime, data=data, url=None)


def _unquoted(data: str) -> bytes:
    """Return what a text with escapes stands for; by parts, because an object is made for each escape of one."""
    parts = _QUOTED.finditer(_json.whole_characters(data))
    return b"".join([unquote_to_bytes(part.group()) for part in parts])


def told_type(media: Media) -> str | None:
    """Return the type of a file, told or shown by its first bytes."""
    return media.mime or (None if media.data is None else type_of_base64(media.data))


def data_url(media: Media) -> str | None:
    """Return a file's address, a `data:` address if it is data."""
    if media.data is None:
        return media.url
    return f"data:{told_type(media) or 'application/octet-stream'};base64,{media.data}"


def is_kept_elsewhere(media: Media, protocol: ProtocolName) -> bool:
    """Return whether only the vendors of other protocols can read a client's file, because one of them keeps it."""
    if media.native is None or media.native.protocol == protocol or media.url is None:
        return False
    keeps = _KEEPS.get((protocol, media.kind))
    return _KEPT.match(media.url) is not None and (keeps is None or keeps.match(media.url) is None)


_KINDS: Final = ("image", "audio", "video", "document")
#: Addresses of files that a vendor keeps, and of videos that one alone can watch: ids, and what is not public.
_YOUTUBE: Final = r"https://(?:www\.|m\.)?youtu(?:be\.com|\.be)/"
_GOOGLES: Final = rf"gs:|files/|https://generativelanguage\.googleapis\.com/|{_YOUTUBE}"
#: A part of a text with escapes, none of them cut.
_QUOTED: Final = rare_pattern(r"(?:%[0-9A-Fa-f]{2}|[\s\S]){1,65536}+")
_PAGES: Final = re.compile(_YOUTUBE, re.IGNORECASE)
_KEPT: Final = re.compile(rf"(?!https?:|data:|file:|$)|{_GOOGLES}", re.IGNORECASE)
_ANTHROPICS: Final = "file_(?!.{8}-)"
#: What servers of OpenAI's protocols keep: any name, as that of xAI, which writes `file_` before a UUID.
_OPENAIS: Final = re.compile(rf"(?!{_ANTHROPICS}|{_GOOGLES})")
#: Protocol and kind → which of them its vendors keep.
_KEEPS: Final = {
    ("openai-chat", "document"): _OPENAIS,
    ("openai-chat", "video"): _PAGES,  # a router to Gemini takes them
    ("openai-responses", "document"): _OPENAIS,
    ("openai-responses", "image"): _OPENAIS,
    ("anthropic-messages", "document"): re.compile(_ANTHROPICS),
    ("anthropic-messages", "image"): re.compile(_ANTHROPICS),
    **{("gemini-generate", kind): re.compile(_GOOGLES) for kind in _KINDS},
}
#: Protocol → kinds of files in its answers, each with whether it stands there as data or by its address.
_MEDIA: Final[Mapping[ProtocolName | None, Container[tuple[str, bool]]]] = {
    "openai-chat": {("image", True), ("image", False), ("audio", True)},
    "openai-responses": {("image", True)},
    "gemini-generate": {(kind, is_data) for kind in _KINDS for is_data in (True, False)},
}
_IMAGE: Final = "image_generation_call"
_OF_IMAGE: Final = frozenset({"type", "id", "status", "result", "output_format"})
#: Protocol → blocks that are read as texts → their fields that make it, the last one their content.
_TEXTS: Final[Mapping[ProtocolName, Mapping[str, tuple[str, ...]]]] = {
    "anthropic-messages": {
        "compaction": ("content",),
        "search_result": ("title", "source", "content"),
        "document": ("title", "context", "source"),
    },
}


def _content(value: Raw | None, path: str, unsaid: list[str]) -> str:
    """Return the text of a content: a string, or a list of texts. Other values' paths are added to `unsaid`."""
    inner = read_fields(value)
    if inner is not None:
        return _content(inner.get("content"), f"{path}.content", unsaid)
    items = read_items(value)
    if items is None:
        return read_text(value)
    texts = []
    for number, item in enumerate(items):
        fields = read_fields(item) or {}
        text = read_text(fields.get("text"))
        if text:
            unsaid += [f"{path}[{number}].{name}" for name in fields if name not in ("type", "text")]
            texts.append(text)
        else:
            unsaid.append(f"{path}[{number}].<{kind_of(item)}>")
    return "\n".join(texts)


def kinds_of(part: Raw) -> list[str]:
    """Return the type of a part; without one, its field names."""
    fields = read_fields(part) or {}
    return [kind_of(part)] if "type" in fields or not fields else [clip(name) for name in fields]


def kind_of(part: Raw) -> str:
    """Return the type of a part or a tool, else its first field name."""
    fields = read_fields(part) or {}
    return clip(read_text(fields.get("type")) or next(iter(fields), "part"))


def is_refusal(native: Native | None) -> bool:
    """Return whether a text is the model's refusal, by its protocol's own fields."""
    if native is None or _REFUSAL.words is None or native.protocol not in _REFUSAL.paths:
        return False
    value = native.fields.get(_REFUSAL.paths[native.protocol][0])
    return value is not None and bytes(value).decode() in _REFUSAL.words[native.protocol]
