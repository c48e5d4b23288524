"""The model names that clients use: which there are, which target answers to one, what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final
from urllib.parse import urlsplit

import msgspec

from dragoman.codec.errors.unsupported_tools import refuses_tools
from dragoman.config import Config
from dragoman.discovery.model_facts import gather, pick_default
from dragoman.embedded import EMBEDDED, has_embedded
from dragoman.errors import ConfigError
from dragoman.events import Failure
from dragoman.proofs import Proof
from dragoman.providers.address import is_loopback
from dragoman.providers.catalog import Model, Provider, nearest, split_target
from dragoman.routing.resolve import EVERY_OTHER, resolve_chain
from dragoman.routing.target import Chain, Target

_LATEST: Final = ":latest"
_KEPT: Final = 256
#: Names that are shown in place of one that cannot be used.
_SHOWN: Final = 5
#: Characters of a name. What is remembered by name is bounded by count, so that a name must be bounded too.
_LONGEST: Final = 512


class UnknownModel(Exception):
    """No target answers to the name. The client gets `failure`."""

    def __init__(self, name: str, known: tuple[str, ...], problem: str = "") -> None:
        """Create it. `known`: the names to suggest. `problem`: why not, if that is known."""
        if len(name) > _LONGEST:
            words = f"expected a model's name of at most {_LONGEST} characters, got {len(name)}: {name[:120]!r}…"
        else:
            others = nearest(name, known) or (f"; there are: {', '.join(known[:_SHOWN])}" if known else "")
            words = f"model {name[:120]!r} not found{f'; {problem}' if problem else others}"
        self.failure = Failure("not_found", words, 404)
        super().__init__(self.failure.message)


@final
class Listed(msgspec.Struct, frozen=True):
    """A name that clients see, and the model that answers to it."""

    name: str
    model: Model


class ModelNames:
    """Looks names up in the configuration in force.

    Attributes:
        prepare: called with the name of each target before its first use.
    """

    __slots__ = ("_chains", "_config", "_keys", "_listed", "_only_routes", "_own_port", "_proof", "_told", "prepare")

    def __init__(
        self, config: Config, *, only_routes: bool = False, proof: Callable[[Model], Proof | None] = lambda model: None
    ) -> None:
        """Create it. `only_routes`: no `provider/model` beside the routes. `proof`: what validation has shown."""
        self._config = config
        self._only_routes = only_routes
        self._proof = proof
        self._chains: dict[str, Chain] = {}
        self._keys: dict[str, str] = {}
        self._told: dict[str, Model] = {}
        self._listed: tuple[Listed, ...] | None = None
        self._own_port = 0
        self.prepare: Callable[[str], None] = lambda target: None

    def listens_at(self, port: int) -> None:
        """Set the gateway's own port: a provider at this address is the gateway, which must not ask itself."""
        self._own_port = port
        self._chains.clear()
        self._keys.clear()
        self._listed = None

    def take(self, config: Config) -> None:
        """Use this configuration from now on. What servers said of their models stays."""
        self._config = config
        self._chains.clear()
        self._keys.clear()
        self._listed = None

    def listed(self) -> tuple[Listed, ...]:
        """Return the names that clients see: routes, the models of `"*"`, of the configuration and of its providers.

        Without any routes, these are the models of all servers, and the catalogue's models of providers whose key is
        set. The embedded model comes last, if it is installed.
        """
        if self._listed is None:
            config = self._config
            found = {name: route.targets[0] for name, route in config.routes.items() if name != EVERY_OTHER}
            if EVERY_OTHER in config.routes:
                target = config.routes[EVERY_OTHER].targets[0]
                found.setdefault(split_target(target)[1], target)
            found |= {alias: config.routes[name].targets[0] for alias, name in config.aliases.items()}
            found |= {target: target for target in config.models if "*" not in target and self._is_open(target)}
            if not found:
                found = {target: target for target in self._told}
                found |= {model.target: model.target for name in config.keys for model in config.catalog.models(name)}
            elif not self._only_routes:
                told = [target for target, model in self._told.items() if model.provider in config.providers]
                found |= {target: target for target in told if target.removesuffix(_LATEST) not in found}
                keyed = [name for name in config.providers if name in config.keys]
                found |= {model.target: model.target for name in keyed for model in config.catalog.models(name)}
            if not self._only_routes and has_embedded():
                found.setdefault(EMBEDDED.target, EMBEDDED.target)
            self._listed = tuple(Listed(name, self._shown(name, target)) for name, target in found.items())
        return self._listed

    def servers(self) -> list[Provider]:
        """Return the providers whose models no catalogue lists, so that they must be asked.

        These are the providers of the targets that clients see; without any, all that are local or configured.
        """
        config = self._config
        targets = [target for route in config.routes.values() for target in route.targets] + [
            name for name in config.models if "*" not in name
        ]
        named = dict.fromkeys(split_target(target)[0] for target in targets)
        names = {**named, **({} if self._only_routes else config.providers)} if named else config.catalog.providers
        found = [config.catalog.provider(name) for name in names]
        return [
            provider
            for provider in found
            if provider.base_url
            and not self._is_own(provider)
            and (provider.local or (provider.name in config.providers and not config.catalog.models(provider.name)))
        ]

    def tell(self, provider: str, models: Iterable[Model]) -> None:
        """Set what a server says of its models, in place of what it said before."""
        self._told = {target: model for target, model in self._told.items() if model.provider != provider}
        self._told |= {model.target: model for model in models}
        self._chains.clear()
        self._keys.clear()
        self._listed = None

    def _model(self, target: str) -> Model:
        """Return what is known of a target: by its server, then by the catalogue."""
        listed = EMBEDDED if target == EMBEDDED.target else self._config.catalog.model(target)
        told = self._told.get(target) or self._told.get(target + _LATEST)
        if told is None:
            return listed
        fields = ("context", "max_output", "input_modalities", "tools", "thinking", "digest")
        said = {name: getattr(told, name) for name in fields if getattr(told, name) is not None}
        return msgspec.structs.replace(listed, **said)

    def find(self, name: str) -> Listed:
        """Return the model that answers to a name. Raises `UnknownModel`: none does."""
        key = self._key(name)
        target = key if "/" in key else self._config.routes[key].targets[0]
        return Listed(name, self._shown(key, target))

    def _shown(self, name: str, target: str) -> Model:
        """Return how a model is listed for clients.

        A model that refuses tools still takes them if its route, or its own table, has another way to ask for them.
        """
        model = self._model(target)
        own, route = self._config.model(target), self._config.routes.get(self._config.aliases.get(name, name))
        way = (own.tools if own is not None else None) or (route.tools if route is not None else "native")
        return model if way == "native" or model.tools else msgspec.structs.replace(model, tools=True)

    @property
    def ollama_version(self) -> str:
        """Return the server's version, as Ollama clients ask for it."""
        return self._config.server.ollama_version

    def chain(self, name: str) -> Chain:
        """Return the targets that answer to a name, with their answers' parts in sequence, as encoders need them.

        Raises:
            UnknownModel: none does.
            ConfigError: their keys or addresses cannot be read.
        """
        return self.answering(name)[1]

    def _resolved(self, key: str) -> Chain:
        chain = resolve_chain(key, self._config)
        for target in chain.targets:
            if self._is_own(target.provider):
                raise ConfigError(f"{target.name}: {target.provider.base_url} is the gateway's own address")
            self.prepare(target.name)
        found = msgspec.structs.replace(chain, targets=tuple(map(self._served, chain.targets)))
        if len(self._chains) >= _KEPT:
            self._chains.clear()
        self._chains[key] = found
        return found

    def _served(self, target: Target) -> Target:
        """Return a target within the limits that its server reports for the model."""
        model = self._model(target.name)
        return msgspec.structs.replace(
            target,
            policy=msgspec.structs.replace(target.policy, sequential=True),
            limits=model.limits(),
            refuses_tools=target.tools == "auto" and model.tools is False,
            digest=model.digest,
        )

    def answering(self, name: str) -> tuple[str, Chain]:
        """Return the route that answers to a name, "" if the name is a target's own, and the same as `chain`.

        Raises:
            UnknownModel, ConfigError: as `chain`.
        """
        key = self._keys.get(name) or self._key(name)
        return ("" if "/" in key else key), self._chains.get(key) or self._resolved(key)

    def _key(self, name: str) -> str:
        """Return the route or target for a name."""
        key = self._keys.get(name)
        if key is None:
            key = self._found(name)
            if key in (name, EVERY_OTHER):  # what answers where nothing is configured may change with what is proven
                if len(self._keys) >= _KEPT:
                    self._keys.clear()
                self._keys[name] = key
        return key

    def _found(self, name: str) -> str:
        """Look up the route or target for a name. Ollama's clients may append `:latest`."""
        if len(name) > _LONGEST:
            raise UnknownModel(name, ())
        for candidate in (name, name.removesuffix(_LATEST)):
            if candidate in self._config.routes and candidate != EVERY_OTHER:
                return candidate
            if candidate in self._config.aliases:
                return self._config.aliases[candidate]
            if self._is_open(candidate):
                return candidate
        if EVERY_OTHER in self._config.routes:
            return EVERY_OTHER
        default = self._default()
        if default is not None:
            return default
        provider = None if self._only_routes else self._config.catalog.providers.get(name.partition("/")[0])
        problem = "" if provider is None else self._config.missing_key(provider)
        listed = tuple(one.name for one in self.listed())
        raise UnknownModel(name, listed + self._unlisted(listed), problem)

    def _unlisted(self, listed: tuple[str, ...]) -> tuple[str, ...]:
        """Return `provider/MODEL` for each configured provider that tells none of its models."""
        if self._only_routes:
            return ()
        told = {name.partition("/")[0] for name in listed}
        servers = [one.name for one in self.servers() if one.name in self._config.providers]
        return tuple(f"{name}/MODEL" for name in servers if name not in told)

    def _default(self) -> str | None:
        """Return what answers to every other name if no route is configured: a local model that is proven, or claimed,
        to take tools.

        It costs nothing, so it need not be named.
        """
        if self._config.routes or self._only_routes:
            return None
        told = [model for model in self._told.values() if self._config.catalog.provider(model.provider).local]
        picked = pick_default(
            gather(model.target, told=model, listed=None, proof=self._proof(model), is_local=True) for model in told
        )
        return None if picked is None else picked.target

    def advised(self, failure: Failure) -> Failure:
        """Return a failure for a missing model, or one without tools, with the names of models that work."""
        if failure.kind != "not_found" and not refuses_tools(failure):
            return failure
        able = [listed.name for listed in self.listed() if listed.model.tools and listed.model != EMBEDDED]
        able = able[:_SHOWN]
        if not able:
            return failure
        words = f"{failure.message}; with tools there {'is' if len(able) == 1 else 'are'}: {', '.join(able)}"
        return msgspec.structs.replace(failure, message=words)

    def _is_open(self, target: str) -> bool:
        """Return whether clients may name this `provider/model`: its provider is configured, has a key, or is local."""
        name, _, model = target.partition("/")
        provider = self._config.catalog.providers.get(name)
        if provider is None or not model or self._only_routes or self._is_own(provider):
            return False
        if target == EMBEDDED.target:
            return True
        config = self._config
        return name in config.providers or name in config.keys or (provider.local and bool(provider.base_url))

    def _is_own(self, provider: Provider) -> bool:
        """Return whether the provider's address is the gateway itself."""
        if not self._own_port:
            return False
        address = urlsplit(provider.base_url)
        return address.port == self._own_port and is_loopback(address.hostname or "")
