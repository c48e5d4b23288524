"""The checks of `dragoman doctor`: the configuration, the servers of this machine, the providers that have a key."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.agent.safe_text import counted
from dragoman.agent.sandbox.bubblewrap import find_bubblewrap, probe_fence
from dragoman.agent.sandbox.guarantees import describe_fence
from dragoman.cli.terminal import first_of
from dragoman.client.failure_words import start_words
from dragoman.config import Config
from dragoman.config.key_files import open_key_files
from dragoman.discovery.query_server import Found, look_at_all
from dragoman.errors import MissingExtra
from dragoman.events import Failure
from dragoman.ledger.folder import LedgerFolder, place_of
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.replica.age import age_words
from dragoman.ledger.replica.file import read_age
from dragoman.ledger.stores.opening import open_reading
from dragoman.providers.catalog import Model, Provider
from dragoman.secret import Secret
from dragoman.types import ProtocolName

Level: TypeAlias = Literal["good", "note", "bad"]
#: A shorter context (tokens) is soon full of tool schemas and results.
SMALL_CONTEXT: Final = 8_192


@final
class Finding(msgspec.Struct, frozen=True):
    """The result of one check. `bad` ones have a fix; a `note` may have one."""

    level: Level
    subject: str
    text: str
    fix: str = ""


async def examine(config: Config, *, only_local: bool = False) -> list[Finding]:
    """Run all checks concurrently."""
    asked = [
        provider
        for provider in config.catalog.providers.values()
        if provider.base_url and (provider.local or (_is_wanted(provider, config) and not only_local))
    ]
    found = await look_at_all(config, [provider for provider in asked if provider.is_complete])
    on_ledger = await asyncio.to_thread(_on_ledger, config)  # a database is asked in an event loop of its own
    findings = [
        _on_configuration(config),
        *_on_unread_keys(config),
        *_on_open_keys(config),
        _on_sandbox(config),
        *on_ledger,
    ]
    for one in found:
        findings += _on_local(one, config) if one.provider.local else _on_far(one, config)
    findings += [_on_incomplete(provider) for provider in asked if not provider.is_complete]
    unasked = [name for name in config.providers if only_local and not config.catalog.provider(name).local]
    if unasked:
        words = "not asked: --local asks only the catalogue's servers on this machine"
        findings += [Finding("note", name, words) for name in unasked]
    elif not any(one.models for one in found) and not config.keys:
        findings.append(
            Finding(
                "bad",
                "models",
                "no server on this machine answers and no key is set",
                "start Ollama and run `ollama pull granite4`, or set a key such as ANTHROPIC_API_KEY; "
                "`dragoman demo` and embedded/smollm2 need neither",
            )
        )
    return findings


def _is_wanted(provider: Provider, config: Config) -> bool:
    return provider.name in config.keys or (provider.name in config.providers and not provider.api_key_env)


# ---------------------------------------------------------------- the configuration


def _on_configuration(config: Config) -> Finding:
    if config.path is None:
        return Finding("note", "configuration", "no file is read, the defaults hold", "dragoman config init writes one")
    return Finding("good", "configuration", f"{config.path}")


def _on_unread_keys(config: Config) -> list[Finding]:
    return [
        Finding("bad", f"key of {name}", reason, "set the variable or write the file, or correct api_key")
        for name, reason in config.unread_keys.items()
    ]


def _on_open_keys(config: Config) -> list[Finding]:
    lines = open_key_files(config, home=Path.home())
    return [Finding("note", "key file", line, "chmod 600 FILE") for line in lines]


def _on_sandbox(config: Config) -> Finding:
    """Report what sandbox the agent's commands run in. Chat works without one, so its absence is no fault."""
    is_wanted = config.agent.sandbox
    path = find_bubblewrap() if is_wanted else None
    fence = probe_fence(path) if path is not None else None
    holding = describe_fence(fence, is_wanted=is_wanted, is_superuser=os.geteuid() == 0)
    level: Level = "good" if holding.is_sandbox and not holding.gaps else "note"
    return Finding(level, "chat's commands", " ".join([f"{holding.summary}.", *holding.gaps]), holding.fix)


def _on_ledger(config: Config) -> list[Finding]:
    """Report whether requests can be recorded, and whether the records are sound as far as a quick look tells."""
    if not config.ledger.enabled or config.server.state is None:
        return [Finding("note", "ledger", "requests are not recorded: [ledger] enabled is false")]
    folder = LedgerFolder.of(config.server.state, config.ledger.store)
    place = next(path for path in (folder.journals, *folder.journals.parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        level: Level = "bad" if config.server.keys or config.virtual_keys else "note"
        return [Finding(level, "ledger", f"{place} cannot be written", "set [server] state to a folder of yours")]
    if folder.store is not None:
        return [_on_store(folder, folder.store)]
    return [Finding("good", "ledger", f"{folder.root}")]


def _on_store(folder: LedgerFolder, store: Secret) -> Finding:
    """Report whether PostgreSQL answers. While it does not, requests go on and their records wait."""
    try:
        with open_reading(folder):
            return Finding("good", "ledger", place_of(store))
    except (StoreAway, MissingExtra) as problem:
        fix = "check ledger.store; what is recorded waits in the state folder until it answers, and its keys hold here "
        fix += "for ledger.replica_max_age_seconds"
        return Finding("bad", "ledger", f"{problem} ({age_words(read_age(folder))} by this machine)", fix)


def _on_incomplete(provider: Provider) -> Finding:
    variables = " and ".join(provider.placeholders.values())
    return Finding("bad", provider.name, f"its address {provider.base_url} is not complete", f"set {variables}")


# ---------------------------------------------------------------- servers on this machine


def _on_local(found: Found, config: Config) -> list[Finding]:
    provider = found.provider
    if found.failure is not None:
        return [_on_silent(provider, found.failure, config)]
    subject = f"{provider.name} at {provider.base_url}"
    get_a_model, get_tools, get_context = _advice(provider)
    if not found.models:
        return [Finding("bad", subject, "it answers and has no model", get_a_model)]
    findings = [Finding("good", subject, _count(found.models))]
    deaf = [model for model in found.models if model.tools is False]
    if len(deaf) == len(found.models):
        findings.append(Finding("bad", subject, f"no tools: {_names(deaf)}", get_tools))
    elif deaf:
        findings.append(Finding("note", subject, f"no tools: {_names(deaf)}"))
    small = [model for model in found.models if model.context is not None and model.context < SMALL_CONTEXT]
    if small:
        words = ", ".join(f"{model.id} ({model.context:,} tokens)" for model in small[:5])
        findings.append(Finding("note", subject, f"small context: {words}", get_context))
    return findings


def _on_silent(provider: Provider, failure: Failure, config: Config) -> Finding:
    """Report a local server that gives no list. It is a fault only if it is the user's own, or does answer."""
    is_there = failure.status is not None
    if provider.name in config.providers or (is_there and failure.kind == "auth"):
        return Finding("bad", provider.name, failure.message, fix_for(failure, provider, config))
    if is_there or failure.kind == "wire":
        return Finding("note", provider.name, f"something else answers at {provider.base_url}")
    return Finding("note", provider.name, f"not running at {provider.base_url}")


def _advice(provider: Provider) -> tuple[str, str, str]:
    """Return how to get a model, one with tools, and a longer context."""
    return _ADVICE.get(provider.protocol, _ADVICE["openai-chat"])


_ADVICE: Final[Mapping[ProtocolName, tuple[str, str, str]]] = {
    "ollama-chat": (
        "ollama pull granite4",
        "ollama pull granite4, or another model that `ollama show` says has tools",
        "pick a model with a longer one; dragoman asks Ollama for as much as the request needs",
    ),
    "openai-chat": (
        "load a model in the server",
        "start the server with a chat template that has tools (llama-server: --jinja, and a model made for tools)",
        "start the server with a longer one (llama-server: -c 16384)",
    ),
}


# ---------------------------------------------------------------- providers beyond this machine


def _on_far(found: Found, config: Config) -> list[Finding]:
    provider, failure = found.provider, found.failure
    key = f" ({_key_name(provider, config)})" if provider.name in config.keys else ""
    subject = f"{provider.name} at {provider.base_url}{key}"
    if failure is None:
        return [Finding("good", subject, counted(len(found.models), "model"))]
    if failure.kind == "not_found" or failure.status == 405:
        return [Finding("good", subject, f"{provider.base_url} answers; it lists no models")]
    return [Finding("bad", subject, failure.message, fix_for(failure, provider, config))]


def fix_for(failure: Failure, provider: Provider, config: Config) -> str:
    """Return what to do about a server that cannot be used."""
    if failure.kind in ("auth", "permission"):
        return f"set a valid key: {_key_name(provider, config)}"
    if failure.kind == "quota":
        return f"the account of {provider.name} needs credit"
    if failure.code == "unknown_host":
        return f"check the host in {provider.base_url}, and this machine's network; behind a proxy, set [http] proxy"
    if failure.code == "tls":
        return "set [http] ca_file to the file of the authority that signed its certificate"
    if failure.code == "proxy":
        return "check [http] proxy"
    if failure.code == "refused":
        return start_words(provider)
    if failure.kind == "timeout":
        return f"check that {provider.base_url} can be reached; behind a proxy, set [http] proxy"
    return f"check base_url under [providers.{provider.name}]: {provider.base_url}"


def _key_name(provider: Provider, config: Config) -> str:
    """Return where the provider's key comes from, or where it is looked for."""
    mine = config.providers.get(provider.name)
    if mine is not None and mine.api_key is not None:
        return mine.api_key
    return " or ".join(provider.api_key_env) or f"api_key under [providers.{provider.name}]"


def _count(models: Sequence[Model]) -> str:
    able = sum(model.tools is True for model in models)
    words = f"{len(models)} model{'s' if len(models) > 1 else ''}: {_names(models)}"
    return f"{words}; {able} with tools" if any(model.tools is not None for model in models) else words


def _names(models: Sequence[Model]) -> str:
    return "".join(first_of([model.id for model in models], 5))
