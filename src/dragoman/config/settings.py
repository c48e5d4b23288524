"""The settings that are in force, as frozen values; the defaults are those without a file."""

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
    """The gateway. `keys`: client keys by reference (`env:`, `file:`), or their `sha256:HEX`; none: loopback only.

    `connections_per_address`: open connections from one address (IPv4, or 64 bits of IPv6) off this machine;
    `trusted_proxies`: addresses from which many clients come, which have no such limit.
    `memory_mib`: MiB that the bodies of all requests under way may take, in each worker; each counts twice.
    `log`: where requests get a line each: "stderr", "off", or the path of a file.
    `drain_seconds`: what answers under way are given when the gateway is told to end. `notice_seconds`: how long it
    takes requests before that as ever, while `/readyz` says that it ends: a balancer needs time to notice.
    `limits`: the bounds of one request and its answer.
    `state`: the folder of what outlives a request (stored responses, seals), shared by all workers; None keeps it in
    memory. `store_responses` False: nothing is kept of responses, whatever a client asks for. `ollama_calls`: how calls
    are written for Ollama clients: "auto" goes by the client's name, "bare" has the `function` key alone (Zed before
    November 2025), "batched" puts all of an answer into one line. `ollama_version`: what Ollama clients are told; some
    refuse servers that are older than what they need (Codex: 0.13.4).
    """

    address: str = "127.0.0.1:4141"
    protocols: Literal["all"] | tuple[ProtocolName, ...] = "all"
    keys: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
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
    """What the user says of a provider: a `table` for the catalogue, the key's reference, whether it is clean,
    whether its first deviation is a failure, and whether a client's own login goes to it (`client_login`).

    `clean`: known to keep to its protocol, so same-protocol traffic passes as bytes. None: not said.
    """

    table: dict[str, Any] = {}
    api_key: str | None = None
    clean: bool | None = None
    strict: Strictness = False
    client_login: bool = False


@final
class RouteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model name for clients: targets in the order in which they are tried, and how their answers are treated.

    `aliases`: further names for the route, for clients that insist on one of their own.
    `order`: another order than the declared one. `only_validated`: targets that validation has not proven are passed
    over; `allow_one_unvalidated`: when that leaves none, the first is still asked. `retries`: how often a
    target is asked again when no other is left; None takes the word of `[http]`.
    `tool_policy`: by kind of tool, or by who runs it, what becomes of one that the target does not know; see
    `dragoman.offering`.
    `tools_required` False: a target that refuses tools is asked again without them. `thinking`: what of the thinking of
    earlier answers goes back; see `dragoman.history.fit`.
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
    """What differs for one target. `dialect` holds only the fields that are set; None is "as the provider or route".

    `paid`: it costs money, so that validation asks it only with leave; None goes by whether a price is known.
    `tool_policy`: its words win over the same ones of the route.
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
    """The file in which validation results are kept, and for how many days they hold.

    A configuration that was loaded always names a file: without one of the user's, `proofs.db` in the data folder.
    """

    store: Path | None = None
    expires_days: int = 30


@final
class HttpConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How providers are reached. No proxy is used unless one is named; all clocks in seconds.

    `first_event_seconds` holds for answers without reasoning from other machines. `silence_seconds` is the time
    without any bytes, `no_progress_seconds` that without anything of the answer (pings do not count).
    `retries`: how often a request is sent again that failed before its answer began, where that may help.
    `image_hosts`: from which hosts images are fetched that a prompt names by their address, for servers that take them
    as data only: `name`, `*.name`, or `*` for every public host; none: they are refused there.
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
    """US dollars per million tokens. Cached tokens without a price of their own cost as `input`."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


@final
class Config(msgspec.Struct, frozen=True):
    """The settings in force.

    Attributes:
        path: the file that was read; None without one.
        catalog: all providers, the user's tables laid over the catalogue's, placeholders filled.
        providers: what the file says of each provider.
        keys: by provider, the API keys that were found, by reference or in the provider's usual variable.
        unread_keys: by provider, why the key that the file names could not be read.
        models, prices: by target.
        virtual_keys: of clients, by name. quotas: of what they may use. written: microseconds since 1970 at which the
            file was changed or put in its place, 0 without one.
        aliases: further names of routes → the route.
        only_provider: the one server that was named in code: every name is a model of it. "": there is none.
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
        """What the file says of a target: by its own name, else by the longest pattern that fits; None: nothing."""
        found = self.models.get(target)
        if found is not None or not self.models:
            return found
        fitting = [name for name in self.models if "*" in name and _fits(name, target)]
        return self.models[max(fitting, key=len)] if fitting else None

    def key(self, provider: str) -> Secret | None:
        """The provider's API key; None when none is set.

        Raises:
            ConfigError: the file names one, and it could not be read.
        """
        if provider in self.unread_keys:
            raise ConfigError(self.unread_keys[provider])
        return self.keys.get(provider)

    def only_server_knows(self, provider: Provider) -> bool:
        """Whether its models stand in no list: on this machine, or one of the user's that the catalogue lacks."""
        return provider.local or (provider.name in self.providers and not self.catalog.models(provider.name))

    def missing_key(self, provider: Provider) -> str:
        """What to set before a provider of the catalogue can be asked; "" when its key is there, or none is needed.

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
    """Whether a target is meant by a pattern, in which `*` is any text, and all else stands for itself."""
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
