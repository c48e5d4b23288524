"""The catalogue of providers and models: `catalog.toml` and `models.json` beside this file.

Files are read at first use, and no code knows a provider by name. A user's tables override the catalogue's; a name that
the catalogue lacks defines a new provider.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.errors import ConfigError, UsageError
from dragoman.protocol import PLAIN, Dialect, ModelLimits
from dragoman.providers.address import base_url_fault, scheme_hint, split_url, whole_address
from dragoman.providers.wrong_tables import listed, wrong_value
from dragoman.types import ProtocolName

Auth: TypeAlias = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "none"]
Modality: TypeAlias = Literal["text", "image", "audio", "video", "document"]


@final
class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service, or a server on this machine, that answers requests. `catalog.toml` explains the fields.

    Attributes:
        path: "": the protocol's own. `body`, `path` and `query` belong to `protocol`, not to those of `also`.
        has_logins: its own clients log in to it, and send a bearer token in place of a key.
        known_as: other names of it, for messages.
        start: the command that starts a server on this machine.
        found_first: if it runs and no model was named, one of its models that takes tools is the default.
        lists_media: its price list names sound and pictures wherever they cost more than text.
        retired: the day (ISO 8601) on which the vendor closed it, or None.
    """

    name: str
    protocol: ProtocolName
    base_url: str
    also: dict[ProtocolName, str] = {}
    regions: dict[str, dict[ProtocolName, str]] = {}
    placeholders: dict[str, str] = {}
    api_key_env: tuple[str, ...] = ()
    auth: Auth = "bearer"
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    path: str = ""
    body: dict[str, Any] = {}
    local: bool = False
    lists_media: bool = False
    retired: str | None = None
    has_logins: bool = False
    dialect: Dialect = PLAIN
    source: str = ""
    page: str = ""
    known_as: tuple[str, ...] = ()
    start: str = ""
    found_first: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether its address has no placeholder left."""
        return bool(self.base_url) and "{" not in self.base_url

    def speaking(self, protocol: ProtocolName) -> Provider:
        """Return the same provider in another of its protocols.

        Raises:
            ConfigError: it does not offer that protocol.
        """
        if protocol == self.protocol:
            return self
        if protocol not in self.also:
            offered = ", ".join((self.protocol, *self.also))
            raise ConfigError(f"provider {self.name}: expected one of its protocols ({offered}), got {protocol}")
        also = {**self.also, self.protocol: self.base_url}
        base_url = also.pop(protocol)
        return msgspec.structs.replace(
            self, protocol=protocol, base_url=base_url, also=also, path="", query={}, body={}
        )


@final
class Model(msgspec.Struct, frozen=True):
    """The known facts about a model. None is "not known", never a guess.

    `context` and `max_output` are in tokens; some sources give the longest input as the context. `digest` identifies
    the weights, if a server reports it.
    """

    provider: str
    id: str
    context: int | None = None
    max_output: int | None = None
    input_modalities: tuple[Modality, ...] | None = None
    tools: bool | None = None
    thinking: bool | None = None
    digest: str | None = None

    @property
    def target(self) -> str:
        """`provider/model`."""
        return f"{self.provider}/{self.id}"

    def limits(self) -> ModelLimits:
        """Return the facts that a protocol needs to render a request to this model."""
        return ModelLimits(self.context, self.max_output)


@final
class ModelSource(msgspec.Struct, frozen=True):
    """The source of rows of `models.json`. `date`: when it was made, `read`: when it was read (ISO 8601)."""

    name: str
    version: str | None
    date: str | None
    read: str
    licence: str | None
    providers: tuple[str, ...]


@final
class Catalog(msgspec.Struct, frozen=True):
    """All providers by name, the user's included. Models are read at the first question about one."""

    providers: dict[str, Provider]

    def provider(self, name: str) -> Provider:
        """Return the provider of that name. Raises `UsageError`: there is none; names the nearest."""
        found = self.providers.get(name)
        if found is None:
            refuse_address(name)
            known = next((one.name for one in self.providers.values() if name.lower() in one.known_as), "")
            near = f"; it is called {known} here" if known else nearest(name, self.providers)
            near = near or "; `dragoman models --all` lists them, [providers.NAME] adds one"
            raise UsageError(f"unknown provider {_clip(name)}{near}")
        return found

    def models(self, provider: str) -> tuple[Model, ...]:
        """Return the models that the catalogue lists for a provider, by id; it lists none for local servers.

        Raises:
            UsageError: no such provider.
        """
        self.provider(provider)
        return _models(provider)

    def model(self, target: str) -> Model:
        """Return what is known of a target's model. For unlisted models, such as local ones, everything is None.

        Raises:
            UsageError: no such provider, or not a target.
        """
        provider, model_id = split_target(target)
        return _find(self.models(provider), model_id) or Model(provider, model_id)

    def known_model(self, target: str) -> Model:
        """Return the listed model of that name.

        Raises:
            UsageError: the provider or the model is not listed; names the nearest.
        """
        provider, model_id = split_target(target)
        listed = self.models(provider)
        found = _find(listed, model_id)
        if found is None:
            near = nearest(model_id, [model.id for model in listed])
            raise UsageError(f"unknown model {_clip(model_id)} of provider {provider}{near}")
        return found


def split_target(target: str) -> tuple[str, str]:
    """Return the two halves of `provider/model`; everything after the first "/" is the model.

    Raises:
        UsageError: one of the halves is missing, or the model's name has a segment "", "." or "..", which would change
            the path of a server that has the name in its URL.
    """
    provider, _, model_id = target.partition("/")
    if "://" in target:
        refuse_address(target)
    if not provider or not model_id:
        raise UsageError(f"expected a target provider/model, got {_clip(target)}")
    if "/" in model_id or model_id[0] == ".":
        check_segments(model_id)
    return provider, model_id


def refuse_address(word: str) -> None:
    """Raise UsageError if a provider's name is an address, with or without a scheme."""
    whole = whole_address(word)
    if whole is not None:
        shown, named = ("", "…") if "@" in word or "?" in word else (f" {_clip(word)}", _clip(whole))
        named = f"[providers.NAME] with base_url = {named}"
        raise UsageError(f"expected a provider's name, got an address{shown}; {named} gives it one")


def check_segments(model: str) -> None:
    """Refuse a model's name that changes the path in which it stands.

    Raises:
        UsageError: one of its segments is "", "." or "..".
    """
    if not {"", ".", ".."}.isdisjoint(model.split("/")):
        raise UsageError(f"expected a model's name without empty segments, '.' and '..', got {_clip(model)}")


_MOST_NEAR: Final = 3
_LEAST_ALIKE: Final = 2 / 3
_SHORTEST_PART: Final = 3  # letters


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: `; nearest: a, b`, or "" if nothing is near.

    Near is what shares two thirds of its letters with the name, what begins with two thirds of the name, and what
    contains the name.
    """
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, n=_MOST_NEAR, cutoff=_LEAST_ALIKE)
    if len(name) >= _SHORTEST_PART:
        start = name[: max(_SHORTEST_PART, math.ceil(len(name) * _LEAST_ALIKE))]
        near += [each for each in names if (name in each or each.startswith(start)) and each not in near]
    return f"; nearest: {', '.join(near[:_MOST_NEAR])}" if near else ""


# ---------------------------------------------------------------- reading


#: Keys of a user's provider table that belong to the reader of the configuration.
_USERS_OWN: Final = ("api_key", "clean", "client_login")
_FIELDS: Final = (*(name for name in Provider.__struct_fields__ if name != "name"), "region")


def load_catalog(overlay: Mapping[str, Mapping[str, Any]] | None = None) -> Catalog:
    """Return the catalogue with the user's provider tables over it.

    Args:
        overlay: provider name → table, in `catalog.toml`'s form; `region` picks one of `regions`, another `protocol`
            one of `also`. `dialect`, `headers`, `query` and `body` are merged key by key, all else replaces.

    Raises:
        ConfigError: an unknown key, a wrong type, a region or protocol that the provider does not have.
    """
    tables = {name: _laid_over(name, _tables().get(name, {}), table) for name, table in (overlay or {}).items()}
    return Catalog(_own_providers() | {name: _provider(name, table) for name, table in tables.items()})


def load_model_sources() -> tuple[ModelSource, ...]:
    """Return the sources of the model list with their dates."""
    return _model_file().sources


def _laid_over(name: str, below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one provider's table with the user's over it; region and protocol become a base URL."""
    if not name or "/" in name:
        raise ConfigError(f"providers.{_clip(name)}: expected a name without '/'")
    known = (*_FIELDS, *_USERS_OWN)
    for key in above:
        if key not in known:
            raise ConfigError(f"providers.{name}.{key[:80]}: unknown key{nearest(key, known) or listed(known)}")
    for key in ("protocol", "region"):
        if not isinstance(above.get(key, ""), str):
            raise ConfigError(f"providers.{name}.{key}: expected a string")
    table = dict(below)
    protocol, region = above.get("protocol", below.get("protocol")), above.get("region")
    if region is not None or (below and protocol != below.get("protocol")):
        table |= _elsewhere(name, below, protocol, region=region, has_url="base_url" in above)
    if "base_url" in above:
        table["also"] = {}  # the vendor's other addresses say nothing about this one
    for key, value in above.items():
        if key in ("dialect", "headers", "query", "body") and isinstance(value, Mapping):
            table[key] = {**table.get(key, {}), **value}
        elif key != "region" and key not in _USERS_OWN:
            table[key] = value
    return table


def _elsewhere(
    name: str, below: Mapping[str, Any], protocol: object, *, region: object, has_url: bool
) -> dict[str, Any]:
    """Return what changes if a provider is used in another region or another protocol."""
    main: object = below.get("protocol")
    sites = below.get("regions", {})
    if region is not None and region not in sites:
        known = ", ".join(sites) or "none"
        raise ConfigError(f"providers.{name}.region: expected one of its regions ({known}), got {_clip(str(region))}")
    urls = sites[region] if region is not None else {main: below.get("base_url"), **below.get("also", {})}
    changed: dict[str, Any] = {"also": {key: url for key, url in urls.items() if key != protocol}}
    if protocol in urls:
        changed["base_url"] = urls[protocol]
    elif not has_url:
        offered = ", ".join(map(str, urls))
        raise ConfigError(f"providers.{name}: expected one of the protocols it has there ({offered}), got {protocol}")
    # The main protocol's own path, query and fixed fields mean nothing in another one.
    return changed if protocol == main else changed | {"path": "", "query": {}, "body": {}}


def _provider(name: str, table: Mapping[str, Any]) -> Provider:
    for key in ("protocol", "base_url"):
        if key not in table:
            raise ConfigError(f"providers.{name}.{key}: missing; a provider outside the catalogue needs it")
    dialect = table.get("dialect", {})
    if isinstance(dialect, Mapping):
        for key in dialect:
            if key not in Dialect.__struct_fields__:
                near = nearest(key, Dialect.__struct_fields__) or listed(Dialect.__struct_fields__)
                raise ConfigError(f"providers.{name}.dialect.{key[:80]}: unknown key{near}")
    table = {**table, "name": name}
    read: Callable[[Mapping[str, Any]], Provider] = partial(msgspec.convert, type=Provider)
    try:
        provider = read(table)
    except msgspec.ValidationError as problem:
        raise wrong_value(problem, Provider, f"providers.{name}", table, read) from None
    for url in (provider.base_url, *provider.also.values()):
        _check_url(name, url, provider.placeholders)
    return provider


def _check_url(name: str, url: str, placeholders: Iterable[str]) -> None:
    """Refuse an invalid address, and one with a password in it, which would show in messages."""
    if not url:
        return  # known only when the server runs
    whole = url
    for placeholder in placeholders:
        whole = whole.replace(f"{{{placeholder}}}", "x")
    if fault := base_url_fault(whole, "set query instead"):
        raise ConfigError(f"providers.{name}.base_url: {fault}")
    if "{" in whole or split_url(whole) is None:
        raise ConfigError(
            f"providers.{name}.base_url: expected http://… or https://…, got {_clip(url)}{scheme_hint(url)}"
        )


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A line of `models.json`."""

    id: str
    context: int | None
    max_output: int | None
    input: tuple[Modality, ...] | None
    tools: bool | None
    thinking: bool | None


class _ModelFile(msgspec.Struct, frozen=True):
    fields: tuple[str, ...]
    sources: tuple[ModelSource, ...]
    models: dict[str, tuple[_Row, ...]]


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    import tomllib

    return tomllib.loads(_read("catalog.toml").decode())


@cache
def _own_providers() -> dict[str, Provider]:
    return {name: _provider(name, table) for name, table in _tables().items()}


@cache
def _model_file() -> _ModelFile:
    file = _json.typed_decoder(_ModelFile)(_read("models.json"))
    if isinstance(file, _json.Malformed):
        raise ConfigError(f"the installed models.json cannot be read: {file.problem}")
    return file


@cache
def _models(provider: str) -> tuple[Model, ...]:
    rows = _model_file().models.get(provider, ())
    return tuple(Model(provider, *msgspec.structs.astuple(row)) for row in rows)


def _find(models: Iterable[Model], model_id: str) -> Model | None:
    return next((model for model in models if model.id == model_id), None)


def _read(name: str) -> bytes:
    """Return a data file of this package."""
    from pathlib import Path

    return Path(__file__).with_name(name).read_bytes()


def _clip(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:79] + "…")
