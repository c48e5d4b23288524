"""List the models that you can ask now, or show what is known of one.

Those are the models of servers that answer (on this machine, or configured), of providers whose key is set, and the
embedded one. A word picks those of a provider, or those with the word in their name; --all lists the catalogue too.

context  the longest conversation, in tokens
price    US dollars for a million tokens of input / of output; – is a server of your own, ? is not known
claims   what the model or its server says it can do; ? is not known
proven   what a validation has shown: tools yes or no, ! where that is not what was claimed; – is not validated
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from dragoman import _json
from dragoman.agent.safe_text import counted
from dragoman.cli.body_input import write, write_json
from dragoman.cli.main import DONE, complain
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import clip, hint, render_table, say
from dragoman.config import Config
from dragoman.embedded import EMBEDDED, has_embedded
from dragoman.errors import MissingExtra, UsageError
from dragoman.events import Failure
from dragoman.proofs import Proof, ProofStore, disagreements, is_clean, is_proven, proof_of, wire_deviations
from dragoman.providers.catalog import Model, Provider, load_model_sources, nearest, refuse_address, split_target
from dragoman.routing.prices import Prices

if TYPE_CHECKING:  # asking servers needs an extra; the catalogue does not
    from dragoman.discovery.query_server import Found

EXAMPLE = (
    "  dragoman models ollama\n  dragoman models --all granite\n  dragoman models info anthropic/claude-sonnet-4-5"
)

_NOT_VALIDATED = "–"
#: Models whose server dragoman starts itself when they are asked for.
_OWN: Final = (EMBEDDED,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "action", nargs="?", default="list", metavar="list|info|WORD", help="what to do (default: list)"
    )
    parser.add_argument("target", nargs="?", metavar="TARGET|WORD", help="info: provider/model; list: what to list")
    parser.add_argument("--provider", metavar="NAME", help="list this provider's models, its catalogue too")
    parser.add_argument("--all", action="store_true", help="list the whole catalogue too, also where no key is set")
    parser.add_argument("--json", action="store_true", help="print one JSON object a model and line")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """List models, or describe one."""
    config = load_settings(options)
    if options.action == "info":
        if not options.target:
            raise UsageError("expected a target: dragoman models info provider/model")
        return _info(options.target, config, as_json=options.json)
    if options.action == "list":
        return _list(options.target, options, config)
    if options.target:
        raise UsageError(f"expected one word, got {options.target[:80]!r} too; say: dragoman models info TARGET")
    return _list(options.action, options, config)


def _list(word: str | None, options: argparse.Namespace, config: Config) -> int:
    named = options.provider
    if named is None and word in config.catalog.providers:
        named = word
    word = None if word == named else word
    wanted = _wanted(named, config, has_all=options.all)
    try:
        found = look_around(wanted, config)
    except MissingExtra as problem:
        if options.provider:
            raise
        hint(f"{problem}, to ask the servers on this machine too\n")
        found = []
    listed = [model for one in wanted for model in (*_models_of(one, found), *config.catalog.models(one.name))]
    if not (options.all or named):
        listed = [model for model in listed if model not in _OWN or has_embedded()]
    models = [model for model in listed if word is None or word.lower() in model.target.lower()]
    proofs, prices = _Proofs(config), Prices(config)
    if options.json:
        write(
            b"".join(
                _json.encode(model_object(model, proofs.of(model), prices.per_million(model.target))) + b"\n"
                for model in models
            )
        )
    elif models:
        header = ("target", "context", "most output", "price", "claims", "proven")
        say(
            render_table(
                [header, *(_row(model, proofs.of(model), _dollars(model, config, prices)) for model in models)]
            )
        )
    silent = {one.provider.name: _failed(one.provider, one.failure) for one in found if one.failure is not None}
    if named in silent:
        return complain(silent[named])
    for name in config.providers:
        if name in silent:  # a server of the catalogue that does not run is none that the user expects
            hint(f"{silent[name]}\n")
    if not models and word is not None:
        refuse_address(word)
        near = nearest(word, (*config.catalog.providers, *(model.id for model in listed)))
        which, where = (
            ("in the catalogue", "")
            if options.all
            else ("that you can ask now", "; the catalogue may have some: dragoman models --all " + word[:80])
        )
        return complain(f"no model or provider {which} has {word[:80]!r} in its name{near}{where}")
    if not options.json:
        hint(_sum(len(models), config, has_all=options.all or named is not None))
    return DONE


def _wanted(named: str | None, config: Config, *, has_all: bool) -> list[Provider]:
    """Return the providers whose models are listed: servers on this machine and the user's own come first."""
    if named is not None:
        return [config.catalog.provider(named)]
    everyone = [one for one in config.catalog.providers.values() if one.retired is None]
    servers = [
        one for one in everyone if config.only_server_knows(one) or one.name in {model.provider for model in _OWN}
    ]
    return [
        *servers,
        *(
            one
            for one in everyone
            if one not in servers
            and (has_all or (one.auth != "none" and not config.missing_key(one) and _has_access(one, config)))
        ),
    ]


def _has_access(provider: Provider, config: Config) -> bool:
    """Return whether the user has a key for a provider, or configured it."""
    return provider.name in config.keys or provider.name in config.providers


def _sum(count: int, config: Config, *, has_all: bool) -> str:
    if has_all:
        return f"{counted(count, 'model')}; the catalogue's as of {_date()}\n"
    others = sum(
        len(config.catalog.models(one.name)) for one in config.catalog.providers.values() if one.retired is None
    )
    return (
        f"{counted(count, 'model')} that you can ask now; "
        f"the catalogue has {others} (dragoman models --all), as of {_date()}.\n"
        "dragoman doctor says which key each provider needs\n"
    )


def _info(target: str, config: Config, *, as_json: bool) -> int:
    name, model_id = split_target(target)
    provider = config.catalog.provider(name)
    if config.only_server_knows(provider):
        found = look_around([provider], config)
        if found and found[0].failure is not None:
            return complain(_failed(provider, found[0].failure))
        listed = _models_of(provider, found)
        # A server that keeps to itself says nothing of a model; Ollama answers to a name without its tag.
        model = next((row for row in listed if row.id in (model_id, f"{model_id}:latest")), None)
        if model is None and listed:
            raise UsageError(
                f"{name} has no model {model_id[:80]!r}; it has: {clip(', '.join(row.id for row in listed), 200)}"
            )
        model = model or config.catalog.model(target)
    else:
        model = config.catalog.known_model(target)
    proof, prices = _Proofs(config).of(model), Prices(config)
    if as_json:
        write_json(model_object(model, proof, prices.per_million(model.target)))
        return DONE
    rows = [
        ("target", model.target),
        ("protocol", provider.protocol),
        ("address", provider.base_url or "starts when it is asked"),
        ("context", _tokens(model.context)),
        ("most output", _tokens(model.max_output)),
        ("price", _dollars(model, config, prices)),
        ("input", ", ".join(model.input_modalities) if model.input_modalities is not None else "?"),
        ("tools", _claim(model.tools)),
        ("thinking", _claim(model.thinking)),
        *(_proven_rows(model, proof) if proof is not None else [("proven", _NOT_VALIDATED)]),
    ]
    say(render_table(rows))
    return DONE


def _failed(provider: Provider, failure: Failure) -> str:
    """Describe why a server gave no list of models, and what to do if that is known."""
    from dragoman.client.failure_words import key_words, start_words

    words = ""
    if failure.kind in ("connection", "timeout"):
        words = f"; {start_words(provider)}"
    elif failure.kind in ("auth", "permission"):
        words = f"; check {key_words(provider)}"
    at = "" if urlsplit(provider.base_url).netloc in failure.message else f" at {provider.base_url}"
    return f"{provider.name}{at}: {failure.message}{words}"


def look_around(providers: Iterable[Provider], config: Config) -> list[Found]:
    """Ask these providers for what must be asked, and return their answers."""
    asked = [provider for provider in providers if provider.base_url and config.only_server_knows(provider)]
    if not asked:
        return []
    from dragoman.discovery.query_server import LOCAL_SECONDS, look_at_all

    return asyncio.run(look_at_all(config, asked, far_seconds=LOCAL_SECONDS))


def model_object(
    model: Model, proof: Proof | None = None, price: tuple[Decimal, Decimal] | None = None
) -> dict[str, Any]:
    """Return a model as plain values; None is unknown.

    `proven` is None until it was validated. `price` is US dollars per million tokens.
    """
    return {
        "target": model.target,
        **msgspec.structs.asdict(model),
        "price": price and {"input": f"{price[0].normalize():f}", "output": f"{price[1].normalize():f}"},
        "proven": proof and _proof_object(model, proof),
    }


def _proof_object(model: Model, proof: Proof) -> dict[str, Any]:
    return {
        "tools": is_proven(proof),
        "clean": is_clean(proof),
        "ways": proof.ways,
        "suite": proof.suite,
        "at": proof.at,
        "probes": {name: result.verdict for name, result in proof.probes.items()},
        "deviations": proof.deviations,
        "disagrees": disagreements(proof, tools=model.tools, thinking=model.thinking),
    }


class _Proofs:
    """The proofs that apply to models as they are now."""

    __slots__ = ("_config", "_store")

    def __init__(self, config: Config) -> None:
        self._config = config
        self._store = ProofStore(
            config.validate.store,
            clock=time.time,
            expires_days=config.validate.expires_days,
            say=lambda message: hint(f"{message}\n"),
        )

    def of(self, model: Model) -> Proof | None:
        """Return the newest one, or None."""
        return proof_of(model, self._config.catalog.provider(model.provider), self._store)


def _models_of(provider: Provider, found: list[Found]) -> tuple[Model, ...]:
    """Return the models that no catalogue lists: those of a server on this machine, and the embedded one."""
    told = next((one.models for one in found if one.provider.name == provider.name), ())
    return (*told, *(model for model in _OWN if model.provider == provider.name))


def _row(model: Model, proof: Proof | None, dollars: str) -> tuple[str, str, str, str, str, str]:
    claims = [word for word, claimed in (("tools", model.tools), ("thinking", model.thinking)) if claimed]
    claims += [word for word in model.input_modalities or () if word != "text"]
    words = ", ".join(claims) or ("?" if model.tools is None else "text")
    tokens = (_tokens(model.context), _tokens(model.max_output))
    return (model.target, *tokens, dollars, words, _proven(model, proof))


def _dollars(model: Model, config: Config, prices: Prices) -> str:
    """Render the price of a million tokens of input and of output."""
    price = prices.per_million(model.target)
    if price is None:
        return "–" if config.catalog.provider(model.provider).local else "?"
    return f"{price[0].normalize():f} / {price[1].normalize():f}"


def _proven(model: Model, proof: Proof | None) -> str:
    if proof is None:
        return _NOT_VALIDATED
    differs = " !" if disagreements(proof, tools=model.tools, thinking=model.thinking) else ""
    return f"{'tools' if is_proven(proof) else 'no tools'}, {_day(proof.at)}{differs}"


def _proven_rows(model: Model, proof: Proof) -> list[tuple[str, str]]:
    passed = sum(result.verdict == "passed" for result in proof.probes.values())
    wire = ", ".join(f"{code} ×{count}" for code, count in wire_deviations(proof).items())
    rows = [
        ("proven", f"{'tools' if is_proven(proof) else 'no tools'}: {passed} of {len(proof.probes)} probes passed"),
        ("", f"{proof.suite} suite, {_day(proof.at)}, dragoman {proof.dragoman}"),
        ("ways", ", ".join(proof.ways) or "no way of asking for tools works"),
        ("deviations", wire or "none seen"),
    ]
    rows += [("disagrees", line) for line in disagreements(proof, tools=model.tools, thinking=model.thinking)]
    return rows


def _day(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def _tokens(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _claim(value: bool | None) -> str:
    return "?" if value is None else "yes" if value else "no"


def _date() -> str:
    return max((source.date or source.read for source in load_model_sources()), default="?")
