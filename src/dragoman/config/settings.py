"""The settings in force, as frozen values. The defaults are those without a file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman.config.admin import AdminConfig
from dragoman.config.agent import AgentConfig
from dragoman.config.ledger import KeyConfig, LedgerConfig
from dragoman.config.limits import LimitsConfig
from dragoman.config.quotas import Quota
from dragoman.errors import ConfigError
from dragoman.history import ThinkingPolicy
from dragoman.offering import ToolPolicy
from dragoman.protocol import Strictness
from dragoman.providers.catalog import Catalog, Provider
from dragoman.secret import Secret
from dragoman.types import Params, ProtocolName

ToolsMode: TypeAlias = Literal["native", "schema", "prompted", "auto"]
#: Fields of a provider's table by which it may be reached without a key.
_OWN_ACCESS: Final = frozenset({"base_url", "headers", "query", "auth"})
#: By what the targets of a route are put in order before one is asked.
Order: TypeAlias = Literal["declared", "proof", "price", "speed"]
#: How often one request is sent again at most; more would multiply a provider's trouble.
MOST_RETRIES: Final = 2
Retries: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_RETRIES)]


@final
class ServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The gateway.

    Attributes:
        keys: client keys by reference (`env:`, `file:`), or their `sha256:HEX`; none: loopback only.
        allowed_origins: origins of web pages that may ask from a browser and read the answers, such as
            "https://chat.example.org" or "app://obsidian.md".
        connections_per_address: open connections from one remote address (IPv4, or 64 bits of IPv6).
        trusted_proxies: addresses that carry many clients and have no such limit.
        memory_mib: MiB that the bodies of all current requests may take, in each worker; each counts twice.
        log: where requests are logged: "stderr", "off", or the path of a file.
        drain_seconds: the time that current answers get when the gateway is told to end.
        notice_seconds: how long it accepts requests before that, while `/readyz` says that it ends: a load balancer
            needs time to notice.
        limits: the bounds of one request and its answer.
        state: the folder of what outlives a request (stored responses, signatures), shared by all workers; None keeps
            it in memory.
        store_responses: False: no response is stored, whatever a client asks for.
        ollama_calls: how calls are written for Ollama clients: "auto" goes by the client's name, "bare" has the
            `function` key alone (Zed before November 2025), "batched" puts all calls of an answer into one line.
        ollama_version: the version that Ollama clients are told; some refuse servers that are too old (Codex: 0.13.4).
    """

    address: str = "127.0.0.1:4141"
    protocols: Literal["all"] | tuple[ProtocolName, ...] = "all"
    keys: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    connections_per_address: Annotated[int, msgspec.Meta(ge=1)] = 512
    trusted_proxies: tuple[str, ...] = ()
    memory_mib: Annotated[int, msgspec.Meta(ge=1)] = 512
    log: str = "stderr"
    drain_seconds: float = 120.0
    notice_seconds: float = 0.0
    limits: LimitsConfig = LimitsConfig()
    state: Path | None = None
    store_responses: bool = True
    ollama_calls: Literal["auto", "bare", "batched"] = "auto"
    ollama_version: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+\.\d+$")] = "0.14.0"


@final
class ProviderConfig(msgspec.Struct, frozen=True):
    """The user's settings for a provider.

    Attributes:
        table: overrides the catalogue's table.
        clean: it is known to keep to its protocol, so same-protocol traffic passes as bytes. None: not said.
        client_login: a client's own login goes to it.
    """

    table: dict[str, Any] = {}
    api_key: str | None = None
    clean: bool | None = None
    strict: Strictness = False
    client_login: bool = False


@final
class RouteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model name for clients: targets in the order in which they are tried, and how their answers are treated.

    Attributes:
        aliases: further names for the route, for clients that insist on one of their own.
        order: another order than the declared one.
        only_validated: skip targets that validation has not proven.
        allow_one_unvalidated: if that leaves none, ask the first one nevertheless.
        retries: how often a target is asked again if no other is left; None uses the value of `[http]`.
        tool_policy: what happens to tools that the target does not support, by kind of tool or by who runs it; see
            `dragoman.offering`.
        tools_required: False: a target that refuses tools is asked again without them.
        thinking: which thinking of earlier answers is sent back; see `dragoman.history.fit`.
    """

    targets: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    order: Order = "declared"
    only_validated: bool = False
    allow_one_unvalidated: bool = False
    retries: Retries | None = None
    arguments: Literal["live", "whole", "raw"] = "live"
    rescue: bool = True
    strict: Strictness = False
    tools: ToolsMode = "native"
    tools_required: bool = True
    tool_policy: dict[str, ToolPolicy] = {}
    thinking: ThinkingPolicy = "same"
    cache: Literal["none", "short", "long"] = "short"


@final
class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The differences of one target.

    Attributes:
        dialect: only the fields that are set; None is "as the provider or route".
        paid: it costs money, so that validation asks it only with permission; None: it does if a price is known.
        tool_policy: its entries override those of the route.
    """

    dialect: dict[str, Any] = {}
    strict: Strictness | None = None
    tools: ToolsMode | None = None
    tools_required: bool | None = None
    tool_policy: dict[str, ToolPolicy] = {}
    thinking: ThinkingPolicy | None = None
    options: Params = Params()
    clean: bool | None = None
    paid: bool | None = None


@final
class ValidateConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file in which validation results are kept, and for how many days they are valid.

    A loaded configuration always names a file: by default `proofs.db` in the data folder.
    """

    store: Path | None = None
    expires_days: int = 30


@final
class HttpConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How providers are reached. No proxy is used unless one is named. All times are in seconds.

    Attributes:
        first_event_seconds: for answers without reasoning from other machines.
        silence_seconds: the time without any bytes.
        no_progress_seconds: the time without anything of the answer (pings do not count).
        retries: how often a request is sent again that failed before its answer began, if that may help.
        image_hosts: hosts from which images are fetched that a prompt names by address, for servers that take them as
            data only: `name`, `*.name`, or `*` for every public host; none: such prompts are refused.
    """

    proxy: Secret | None = None
    ca_file: Path | None = None
    image_hosts: tuple[str, ...] = ()
    connect_seconds: float = 10.0
    first_event_seconds: float = 120.0
    reasoning_first_event_seconds: float = 300.0
    local_first_event_seconds: float = 600.0
    silence_seconds: float = 120.0
    no_progress_seconds: float = 300.0
    total_seconds: float = 3_600.0
    retries: Retries = MOST_RETRIES


@final
class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens.

    Cached tokens without a price of their own cost as `input`, those that are kept for an hour twice as much. The cost
    of sound, of pictures in answers, and of a service tier is unknown without one. `tiers`: by their names.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_long: Decimal | None = None
    input_audio: Decimal | None = None
    output_audio: Decimal | None = None
    output_image: Decimal | None = None
    cache_read_audio: Decimal | None = None
    tiers: dict[str, Price] = {}


@final
class Config(msgspec.Struct, frozen=True):
    """The settings in force.

    Attributes:
        path: the file that was read; None without one.
        catalog: all providers, the user's tables laid over the catalogue's, placeholders filled.
        providers: the file's settings for each provider.
        keys: by provider, the API keys that were found, by reference or in the provider's usual variable.
        unread_keys: by provider, why the key that the file names could not be read.
        models, prices: by target.
        virtual_keys: of clients, by name.
        quotas: what they may use.
        written: microseconds since 1970 at which the file was changed or put in place, 0 without one.
        aliases: further names of routes and their routes.
        only_provider: the single server that was named in code, whose model every name is; or "".
    """

    path: Path | None
    catalog: Catalog
    server: ServerConfig = ServerConfig()
    admin: AdminConfig = AdminConfig()
    providers: dict[str, ProviderConfig] = {}
    routes: dict[str, RouteConfig] = {}
    models: dict[str, ModelConfig] = {}
    validate: ValidateConfig = ValidateConfig()
    http: HttpConfig = HttpConfig()
    agent: AgentConfig = AgentConfig()
    prices: dict[str, Price] = {}
    ledger: LedgerConfig = LedgerConfig()
    virtual_keys: dict[str, KeyConfig] = {}
    quotas: tuple[Quota, ...] = ()
    written: int = 0
    keys: dict[str, Secret] = {}
    unread_keys: dict[str, str] = {}
    aliases: dict[str, str] = {}
    only_provider: str = ""

    def model(self, target: str) -> ModelConfig | None:
        """Return the file's settings for a target: by its own name, else by the longest matching pattern, or None."""
        found = self.models.get(target)
        if found is not None or not self.models:
            return found
        fitting = [name for name in self.models if "*" in name and _fits(name, target)]
        return self.models[max(fitting, key=len)] if fitting else None

    def key(self, provider: str) -> Secret | None:
        """Return the provider's API key, or None.

        Raises:
            ConfigError: the file names one, and it could not be read.
        """
        if provider in self.unread_keys:
            raise ConfigError(self.unread_keys[provider])
        return self.keys.get(provider)

    def only_server_knows(self, provider: Provider) -> bool:
        """Return whether no catalogue lists its models: it is on this machine, or the user's own."""
        return provider.local or (provider.name in self.providers and not self.catalog.models(provider.name))

    def missing_key(self, provider: Provider) -> str:
        """Return what to set before a provider of the catalogue can be asked; "" if its key is there, or none is
        needed.

        A provider whose address, headers or login the user has set may do without one.
        """
        if provider.local or provider.auth == "none" or not provider.api_key_env or provider.name in self.keys:
            return ""
        mine = self.providers.get(provider.name)
        if mine is not None and (mine.client_login or not _OWN_ACCESS.isdisjoint(mine.table)):
            return ""
        variables = " or ".join(provider.api_key_env)
        return f"{provider.name} needs a key: set {variables}, or api_key under [providers.{provider.name}]"


def _fits(pattern: str, target: str) -> bool:
    """Return whether a pattern matches a target. `*` is any text; every other character stands for itself."""
    first, *others = pattern.split("*")
    if not target.startswith(first):
        return False
    at = len(first)
    for piece in others[:-1]:
        found = target.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(target) - at >= len(others[-1]) and target.endswith(others[-1])
