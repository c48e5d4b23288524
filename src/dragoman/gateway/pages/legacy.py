"""The older forms of two protocols, and what Ollama clients ask of a server that loads and downloads models."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.client.offload import run_sized, weight_of
from dragoman.client.requester import Requester
from dragoman.codec.json_fields import Fields, read, read_body, read_text
from dragoman.codec.timestamps import render_time
from dragoman.errors import WireError
from dragoman.gateway.endpoint import Call, Endpoint
from dragoman.gateway.messages import Answer
from dragoman.gateway.model_names import ModelNames
from dragoman.gateway.pages.forward import Forwarder, MakeRequest, with_model
from dragoman.gateway.relay import Relay
from dragoman.protocol import HttpRequest, Legacy, Parsed, Protocol, no_glance
from dragoman.protocols import PROTOCOLS, legacy
from dragoman.types import ProtocolName

_OLLAMA: Final[ProtocolName] = "ollama-chat"
_OPENAI: Final[ProtocolName] = "openai-chat"
_LINES: Final = "application/x-ndjson"
#: `keep_alive` of a client that has no more use for the model.
_NO_TIME: Final = (0, "0", "0s", "0m", "0h")
_MESSAGES: Final = b'"messages"'
_NOTHING: Final = re.compile(rb"\s*:\s*(?:\[\s*\]|null)")


class LegacyPages:
    """The endpoints of one gateway."""

    __slots__ = ("_client", "_forwarder", "_names", "_relay")

    def __init__(self, client: Requester, relay: Relay, names: ModelNames, forwarder: Forwarder) -> None:
        self._client = client
        self._relay = relay
        self._names = names
        self._forwarder = forwarder

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return all paths."""
        return (
            Endpoint(_OLLAMA, ("POST",), "/api/chat", self._chat),
            Endpoint(_OLLAMA, ("POST",), "/api/generate", self._generate),
            Endpoint(_OLLAMA, ("POST",), "/api/pull", self._pull),
            Endpoint(_OPENAI, ("POST",), "/v1/completions", self._complete),
            # Who serves Ollama serves its OpenAI side too.
            Endpoint(_OLLAMA, ("POST",), "/v1/completions", self._complete),
        )

    async def _chat(self, call: Call) -> None:
        """Serve a chat. Without messages it only asks to load the model."""
        place = call.body.find(_MESSAGES)
        if place < 0 or _NOTHING.match(call.body, place + len(_MESSAGES)):  # hardly ever, so it costs one search
            fields = await _fields(call)
            if not read(fields.get("messages")):
                await self._load(call, fields, "/api/chat", {"message": {"role": "assistant", "content": ""}})
                return
        await self._relay.respond(self._chatting(), call.head, call.body, call.response_writer, call.record)

    def _chatting(self) -> Protocol:
        """Return Ollama's protocol, with calls in the configured form."""
        form = self._client.config.server.ollama_calls
        if form == "auto":
            return PROTOCOLS[_OLLAMA]

        def parse_request(body: bytes, *, path: str = "", fields: Fields | None = None) -> Parsed:
            parsed = PROTOCOLS[_OLLAMA].parse_request(body, path=path, fields=fields)
            style = msgspec.structs.replace(parsed.style, bare_calls=form == "bare", batch_calls=form == "batched")
            return msgspec.structs.replace(parsed, style=style)

        return msgspec.structs.replace(PROTOCOLS[_OLLAMA], parse_request=parse_request, peek=no_glance)

    async def _generate(self, call: Call) -> None:
        """Serve Ollama's text completion. Without a prompt it asks to load the model."""
        fields = await _fields(call)
        if not read(fields.get("prompt")) and not read(fields.get("images")) and not read(fields.get("suffix")):
            await self._load(call, fields, "/api/generate", {"response": ""})
            return
        await self._turn(legacy(_OLLAMA), call, fields)

    async def _complete(self, call: Call) -> None:
        """Serve OpenAI's text completion."""
        await self._turn(legacy(_OPENAI), call, await _fields(call))

    async def _turn(self, form: Legacy, call: Call, fields: Fields) -> None:
        """Serve a completion with any model or, if a field needs it, forward it to a provider with this form."""
        name = form.unsayable(call.body)
        chain = self._forwarder.find(_model(fields), (form.protocol.name,), call) if name else None
        if chain is None:
            await self._relay.respond(form.protocol, call.head, call.body, call.response_writer, call.record)
            return
        await self._forwarder.pass_on(call, chain, _renamed(form.path, call.body))

    async def _load(self, call: Call, fields: Fields, path: str, said: dict[str, Json]) -> None:
        """Let an Ollama server load or unload the model. Other providers need no request."""
        name = _model(fields)
        chain = self._forwarder.find(name, (_OLLAMA,), call)
        if chain is not None:
            await self._forwarder.pass_on(call, chain, _renamed(path, call.body))
            return
        reason = "unload" if read(fields.get("keep_alive")) in _NO_TIME else "load"
        head = {"model": name, "created_at": render_time(int(time.time()))}
        call.answer(Answer(200, _json.encode({**head, **said, "done": True, "done_reason": reason})))

    async def _pull(self, call: Call) -> None:
        """Answer a pull: models that answer are here already; others cannot be downloaded."""
        fields = await _fields(call)
        self._names.find(_model(fields))
        if read(fields.get("stream")) is False:
            call.answer(Answer(200, _json.encode({"status": "success"})))
            return
        lines = b"".join(_json.encode({"status": status}) + b"\n" for status in ("pulling manifest", "success"))
        call.answer(Answer(200, lines, _LINES))


def _renamed(path: str, body: bytes) -> MakeRequest:
    """Return a body that is unchanged but for each target's name of the model."""
    return lambda target: HttpRequest(path, with_model(body, target.model), {"content-type": "application/json"})


async def _fields(call: Call) -> Fields:
    return await run_sized(weight_of(call.body), partial(read_body, call.body))


def _model(fields: Fields) -> str:
    name = read_text(fields.get("model")) or read_text(fields.get("name"))
    if not name:
        raise WireError("expected the name of a model", path="model")
    return name
