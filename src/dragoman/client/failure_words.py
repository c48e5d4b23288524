"""Explain a provider's failure: which provider, at which address, and what to do if that is known."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

import msgspec

from dragoman.events import Failure
from dragoman.providers.catalog import Provider
from dragoman.routing.target import Target
from dragoman.secret import masked

#: What paths of a version hold, and that version.
_VERSIONS: Final = {"/chat/completions": "v1", "/responses": "v1", "/models/": "v1beta"}
#: The beginning of what `dragoman.http.response.not_connected` says.
_NOT_CONNECTED: Final = "no connection to "
_VERSION: Final = re.compile(r"/v\d")
#: What servers say of a model that they do not have, one behind the other; another 404 is about the path.
_MODEL: Final = re.compile(r"(?i)\bmodels?\b")
_MISSING: Final = re.compile(r"(?i)\b(?:exist|found|available|pull)")


def explained(failure: Failure, target: Target, url: str) -> Failure:
    """Return the failure with its provider's name, the address and the fix, without the provider's secrets."""
    secrets = target.secrets()
    message = masked(failure.message, secrets)
    code = None if failure.code is None else masked(failure.code, secrets)
    place = shown_address(url)
    told = _who(failure, target.provider, place, message)
    fix = _fix(failure, target, place)
    words = "; ".join(word for word in (told, fix) if word and word not in message)
    message = f"{message} ({masked(words, secrets)})" if words else message
    return msgspec.structs.replace(failure, message=message, code=code)


def shown_address(url: str) -> str:
    """Return an address without its login and its query, which may contain a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def start_words(provider: Provider) -> str:
    """Describe how to start a server that does not run, or where to configure its address."""
    start = f"start it: {provider.start}" if provider.start else "start the server"
    return f"{start}, or {'correct base_url' if _is_of_code(provider) else f'set base_url under {_table(provider)}'}"


def key_words(provider: Provider) -> str:
    """Describe where a provider's key is configured."""
    own = "api_key" if _is_of_code(provider) else f"api_key under {_table(provider)}"
    return f"{' or '.join(provider.api_key_env)}, or {own}" if provider.api_key_env else own


def _table(provider: Provider) -> str:
    return f"[providers.{provider.name}]"


def _is_of_code(provider: Provider) -> bool:
    """Return whether it is the one server of a client that was given its address, which is its name."""
    return provider.name == urlsplit(provider.base_url).netloc.rpartition("@")[2]


def _who(failure: Failure, provider: Provider, place: str, message: str) -> str:
    if failure.status is not None:
        return f"{provider.name}: POST {place} answered {failure.status}"
    host = urlsplit(place).netloc
    return provider.name if host and host in message else f"{provider.name} at {place}"


def _fix(failure: Failure, target: Target, place: str) -> str:
    provider = target.provider
    if failure.kind in ("auth", "permission"):
        if target.client_login:
            return ""
        return f"this is about the key of {provider.name}, not a client's: check {key_words(provider)}"
    if failure.kind == "quota":
        return f"the account at {provider.name} needs credit"
    if failure.kind == "not_found" and not _VERSION.search(place) and not _lacks_model(failure.message):
        version = next((version for below, version in _VERSIONS.items() if below in place), "")
        return f"does base_url end in /{version}?" if version else ""
    if failure.kind == "connection" and failure.message.startswith(_NOT_CONNECTED):
        return start_words(provider)
    if failure.kind == "wire" and "expected a response, got" in failure.message:
        return f"does base_url lead to a server that speaks {provider.protocol}?"
    return ""


def _lacks_model(message: str) -> bool:
    model = _MODEL.search(message)
    return model is not None and _MISSING.search(message, model.end()) is not None
