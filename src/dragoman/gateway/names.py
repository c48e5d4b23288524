"""The model names that clients use: which there are, which target answers to one, what is known of it."""

from __future__ import annotations

from typing import Final, final

import msgspec

from dragoman.client.resolver import resolve
from dragoman.client.target import Target
from dragoman.config import Config
from dragoman.events import Failure
from dragoman.providers import Model, nearest, split_target

#: The route of every other name.
EVERY_OTHER: Final = "*"
_LATEST: Final = ":latest"
_KEPT: Final = 256


class UnknownModel(Exception):
    """No target answers to the name; `failure` says so to the client."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.failure = Failure("not_found", f"model {name[:120]!r} not found{nearest(name, known)}", 404)
        super().__init__(self.failure.message)


@final
class Listed(msgspec.Struct, frozen=True):
    """A name that clients are shown, and the model that answers to it."""

    name: str
    model: Model


class Names:
    """Looks names up in a configuration that does not change."""

    __slots__ = ("_config", "_listed", "_only_routes", "_targets")

    def __init__(self, config: Config, *, only_routes: bool = False) -> None:
        """`only_routes`: no `provider/model` can be asked for beside the routes."""
        self._config = config
        self._only_routes = only_routes
        self._targets: dict[str, Target] = {}
        self._listed: tuple[Listed, ...] | None = None

    def listed(self) -> tuple[Listed, ...]:
        """What clients are shown: routes, the models of `"*"` and of the configuration; without any of these the
        catalogue's models of providers whose key is there."""
        if self._listed is None:
            config = self._config
            found = {name: route.targets[0] for name, route in config.routes.items() if name != EVERY_OTHER}
            if EVERY_OTHER in config.routes:
                target = config.routes[EVERY_OTHER].targets[0]
                found.setdefault(split_target(target)[1], target)
            found |= {target: target for target in config.models if self._is_open(target)}
            if not found:
                found = {model.target: model.target for name in config.keys for model in config.catalog.models(name)}
            self._listed = tuple(Listed(name, config.catalog.model(target)) for name, target in found.items())
        return self._listed

    def find(self, name: str) -> Listed:
        """The model that answers to a name.

        Raises:
            UnknownModel: none does.
        """
        key = self._key(name)
        target = key if "/" in key else self._config.routes[key].targets[0]
        return Listed(name, self._config.catalog.model(target))

    def target(self, name: str) -> Target:
        """The target that answers to a name, its parts in sequence as encoders want them.

        Raises:
            UnknownModel: none does.
            ConfigError: its key or address cannot be read.
        """
        key = self._key(name)
        found = self._targets.get(key)
        if found is None:
            found = resolve(key, self._config)
            found = msgspec.structs.replace(found, policy=msgspec.structs.replace(found.policy, sequential=True))
            if len(self._targets) >= _KEPT:
                self._targets.clear()
            self._targets[key] = found
        return found

    def _key(self, name: str) -> str:
        """The route or target for a name; Ollama's clients may add `:latest` to it."""
        for candidate in (name, name.removesuffix(_LATEST)):
            if candidate in self._config.routes and candidate != EVERY_OTHER:
                return candidate
            if self._is_open(candidate):
                return candidate
        if EVERY_OTHER in self._config.routes:
            return EVERY_OTHER
        raise UnknownModel(name, tuple(listed.name for listed in self.listed()))

    def _is_open(self, target: str) -> bool:
        """Whether clients may name this `provider/model`: its provider is configured, has a key, or is local."""
        name, _, model = target.partition("/")
        provider = self._config.catalog.providers.get(name)
        if provider is None or not model or self._only_routes:
            return False
        config = self._config
        return name in config.providers or name in config.keys or (provider.local and bool(provider.base_url))
