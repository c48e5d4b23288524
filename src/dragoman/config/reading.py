"""Parse `dragoman.toml` into a `Config`: strict about keys and types, each error names its path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import msgspec

from dragoman.config.admin import AdminConfig, check_admin_names
from dragoman.config.agent import AgentConfig
from dragoman.config.files import LARGEST_CONFIG, read_file, reason_of
from dragoman.config.ledger import KeyConfig, LedgerConfig, check_amounts, check_counters, check_keys, check_store
from dragoman.config.places import data_folder, default_path, state_folder
from dragoman.config.quotas import Quota, QuotaConfig, read_quotas
from dragoman.config.references import check_listener, check_origins, check_reference, expand, read_secret
from dragoman.config.settings import (
    Config,
    HttpConfig,
    ModelConfig,
    Price,
    ProviderConfig,
    RouteConfig,
    ServerConfig,
    ValidateConfig,
)
from dragoman.config.strict_tables import as_struct, check_mcp_server, refuse_unknown
from dragoman.errors import ConfigError, UsageError
from dragoman.offering import POLICY_KEYS
from dragoman.protocol import Dialect
from dragoman.providers.address import scheme_hint, split_url
from dragoman.providers.catalog import Catalog, Provider, load_catalog, split_target
from dragoman.providers.endpoint import filled
from dragoman.providers.wrong_tables import dotted
from dragoman.secret import Secret
from dragoman.types import Params

PATH_VARIABLE: Final = "DRAGOMAN_CONFIG"
PROOFS_FILE: Final = "proofs.db"


def load_config(path: Path | str | None = None, *, environ: Mapping[str, str], home: Path) -> Config:
    """Return the configuration in force.

    Args:
        path: the file to read, in place of the usual one.
        environ: the environment's variables.
        home: the user's home folder.

    Raises:
        ConfigError: the named file is missing, or something in it is wrong: file, key path, what was expected.
    """
    named = path or environ.get(PATH_VARIABLE)
    file = Path(named) if named else default_path(environ=environ, home=home)
    if not named and not _is_there(file):
        return _Reading(None, environ=environ, home=home).config({})
    try:
        return _Reading(file, environ=environ, home=home).config(_parse(file))
    except (ConfigError, UsageError) as problem:
        raise ConfigError(f"{file}: {problem}") from None


def _is_there(file: Path) -> bool:
    """Return whether something stands there, be it a folder, a link to nothing, or what nobody here may look at."""
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def read_document(tables: Mapping[str, Any], *, file: Path | None, environ: Mapping[str, str], home: Path) -> Config:
    """Return the configuration of these tables. Raises ConfigError, UsageError."""
    return _Reading(file, environ=environ, home=home).config(tables)


def read_tables(path: Path | str) -> dict[str, Any]:
    """Return the tables of a file. Raises ConfigError."""
    file = Path(path)
    if not file.is_file():
        raise ConfigError(f"{file}: expected a configuration file, found none")
    return _parse(file)


# ---------------------------------------------------------------- reading


@final
class _Reading:
    """One reading of a file: what relative paths and references in it refer to."""

    __slots__ = ("_environ", "_file", "_folder", "_home")

    def __init__(self, file: Path | None, *, environ: Mapping[str, str], home: Path) -> None:
        self._file = file
        self._folder = (file or home).absolute().parent
        self._environ = environ
        self._home = home

    def config(self, document: Mapping[str, Any]) -> Config:
        refuse_unknown(document, _SECTIONS, "")
        providers = {name: self._provider(name, table) for name, table in _tables(document, "providers").items()}
        loaded = load_catalog({name: provider.table for name, provider in providers.items()})
        catalog = Catalog({name: filled(provider, self._environ) for name, provider in loaded.providers.items()})
        keys, unread = self._keys(providers, catalog)
        routes = {name: _route(name, table, catalog) for name, table in _tables(document, "routes").items()}
        named = _tables(document, "keys")
        virtual_keys = check_keys({name: as_struct(table, KeyConfig, f"keys.{name}") for name, table in named.items()})
        ledger = self._ledger(read_table(document, "ledger"))
        return Config(
            path=self._file,
            catalog=catalog,
            server=self._server(read_table(document, "server"), virtual_keys),
            admin=self._admin(read_table(document, "admin")),
            providers=providers,
            routes=routes,
            aliases=_aliases(routes),
            models={name: _model(name, table, catalog) for name, table in _tables(document, "models").items()},
            validate=self._validate(read_table(document, "validate")),
            http=self._http(read_table(document, "http")),
            agent=self._agent(read_table(document, "agent"), catalog),
            prices={name: _price(name, table, catalog) for name, table in _tables(document, "prices").items()},
            ledger=ledger,
            virtual_keys=virtual_keys,
            quotas=self._quotas(document.get("quotas", []), ledger),
            written=self._written(),
            keys=keys,
            unread_keys=unread,
        )

    def _quotas(self, tables: object, ledger: LedgerConfig) -> tuple[Quota, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise ConfigError("quotas: expected tables, each begun by [[quotas]]")
        if tables and not ledger.enabled:
            raise ConfigError("quotas: expected a ledger to count by, and ledger.enabled is false")
        converted = [as_struct(table, QuotaConfig, f"quotas[{number}]") for number, table in enumerate(tables)]
        quotas = read_quotas(converted, generation=self._written())
        if ledger.counters is not None:
            check_amounts(quotas)
        return quotas

    def _written(self) -> int:
        """Return when the file was written or put in place, in microseconds since 1970.

        Of two gateways that share a folder, the later file is right. A file that was moved back keeps its modification
        time and gets a new change time.
        """
        if self._file is None:
            return 0
        try:
            found = self._file.stat()
        except OSError:
            return 0
        return max(found.st_mtime_ns, found.st_ctime_ns) // 1_000

    def _provider(self, name: str, table: Mapping[str, Any]) -> ProviderConfig:
        where = f"providers.{dotted(name)}"
        mine = as_struct({key: table[key] for key in _USERS_OWN if key in table}, ProviderConfig, where)
        if mine.api_key is not None:
            check_reference(mine.api_key, f"{where}.api_key")
        rest = {key: value for key, value in table.items() if key not in _USERS_OWN}
        if mine.client_login:
            _check_login(name, rest)
        return ProviderConfig(rest, mine.api_key, mine.clean, mine.strict, mine.client_login)

    def _keys(
        self, providers: Mapping[str, ProviderConfig], catalog: Catalog
    ) -> tuple[dict[str, Secret], dict[str, str]]:
        keys: dict[str, Secret] = {}
        unread: dict[str, str] = {}
        for name, provider in catalog.providers.items():
            reference = providers[name].api_key if name in providers else None
            if reference is None:
                variable = key_variable(provider, self._environ)
                if variable is not None:
                    keys[name] = Secret(self._environ[variable].strip())
                continue
            try:
                keys[name] = self._secret(reference, f"providers.{dotted(name)}.api_key")
            except ConfigError as problem:
                unread[name] = str(problem)
        return keys, unread

    def _server(self, table: Mapping[str, Any], virtual_keys: Mapping[str, KeyConfig]) -> ServerConfig:
        server = as_struct(table, ServerConfig, "server")
        digests = [digest for key in virtual_keys.values() for digest in key.digests]
        check_listener("server", (*server.keys, *digests), server.address)
        check_origins(server.allowed_origins)
        for name, seconds in (("drain", server.drain_seconds), ("notice", server.notice_seconds)):
            if not 0 <= seconds < float("inf"):
                raise ConfigError(f"server.{name}_seconds: expected seconds, 0 or more, got {seconds:g}")
        if server.log not in ("stderr", "off"):
            log = expand(server.log, home=self._home, folder=self._folder)
            server = msgspec.structs.replace(server, log=str(log))
        if server.state is None:
            state = state_folder(environ=self._environ, home=self._home)
        else:
            state = expand(str(server.state), home=self._home, folder=self._folder)
        return msgspec.structs.replace(server, state=state)

    def _admin(self, table: Mapping[str, Any]) -> AdminConfig:
        admin = as_struct(table, AdminConfig, "admin")
        if admin.address is not None:
            check_listener("admin", admin.references(), admin.address)
        check_admin_names(admin.keys)
        return admin

    def _validate(self, table: Mapping[str, Any]) -> ValidateConfig:
        validate = as_struct(table, ValidateConfig, "validate")
        if validate.expires_days < 1:
            raise ConfigError(f"validate.expires_days: expected at least 1, got {validate.expires_days}")
        if validate.store is None:
            store = data_folder(environ=self._environ, home=self._home) / PROOFS_FILE
        else:
            store = expand(str(validate.store), home=self._home, folder=self._folder)
        return msgspec.structs.replace(validate, store=store)

    def _agent(self, table: Mapping[str, Any], catalog: Catalog) -> AgentConfig:
        agent = as_struct(table, AgentConfig, "agent")
        if agent.target is not None and "/" in agent.target:
            _check_target(agent.target, "agent.target", catalog)
        if not agent.limits.usd > 0:
            raise ConfigError(f"agent.limits.usd: expected US dollars above 0, got {agent.limits.usd}")
        for name, server in agent.mcp.items():
            where = f"agent.mcp.{dotted(name)}"
            check_mcp_server(server, where)
            for key, reference in (*server.environ.items(), *server.headers.items()):
                check_reference(reference, f"{where}.{key}")
        tools = tuple(
            str(expand(name, home=self._home, folder=self._folder)) if name.endswith(".py") else name
            for name in agent.tools
        )
        return msgspec.structs.replace(agent, tools=tools)

    def _http(self, table: Mapping[str, Any]) -> HttpConfig:
        named = table.get("proxy")
        http = as_struct({key: value for key, value in table.items() if key != "proxy"}, HttpConfig, "http")
        for name in HttpConfig.__struct_fields__:
            value = getattr(http, name)
            if isinstance(value, float) and not value > 0:
                raise ConfigError(f"http.{name}: expected more than 0 seconds, got {value:g}")
        if named is not None:
            http = msgspec.structs.replace(http, proxy=self._proxy(named))
        if http.ca_file is not None:
            file = expand(str(http.ca_file), home=self._home, folder=self._folder)
            if not file.is_file():
                raise ConfigError(f"http.ca_file: expected a file of certificates at {file}, found none")
            http = msgspec.structs.replace(http, ca_file=file)
        return http

    def _ledger(self, table: Mapping[str, Any]) -> LedgerConfig:
        others = {key: value for key, value in table.items() if key not in ("store", "counters")}
        ledger = as_struct(others, LedgerConfig, "ledger")
        store = self._engine(table.get("store", "sqlite"), "sqlite", "ledger.store")
        counters = self._engine(table.get("counters", "store"), "store", "ledger.counters")
        if store is not None:
            check_store(store)
        if counters is not None:
            check_counters(counters)
            if store is None:
                raise ConfigError("ledger.counters: expected store, or a ledger.store in PostgreSQL beside them")
        return msgspec.structs.replace(ledger, store=store, counters=counters)

    def _engine(self, named: object, usual: str, where: str) -> Secret | None:
        """Return an address, given by reference or as it is; None: the default one."""
        if not isinstance(named, str):
            raise ConfigError(f"{where}: expected text, got {type(named).__name__}")
        if named == usual:
            return None
        return self._secret(named, where) if named.startswith(("env:", "file:")) else Secret(named)

    def _proxy(self, named: object) -> Secret | None:
        """Return the proxy's address, which may contain a password. An unset variable means none, as usual."""
        if not isinstance(named, str):
            raise ConfigError(f"http.proxy: expected an address, env:NAME or file:PATH, got {type(named).__name__}")
        if named.startswith("env:") and not self._environ.get(named[4:], "").strip():
            return None
        is_reference = named.startswith(("env:", "file:"))
        proxy = self._secret(named, "http.proxy") if is_reference else Secret(named)
        if split_url(proxy.reveal()) is None:
            hint = scheme_hint(proxy.reveal())
            raise ConfigError(f"http.proxy: expected http://HOST:PORT, got something else (not shown){hint}")
        return proxy

    def _secret(self, reference: str, where: str) -> Secret:
        return read_secret(reference, where, environ=self._environ, home=self._home, folder=self._folder)


#: US dollars that no million tokens cost; what is computed with an amount beyond it is none any more.
_DEAREST: Final = 10**9
#: A key of so many parts takes the reader a few milliseconds; the time grows with their square.
_MOST_DOTS: Final = 1_000
_USERS_OWN: Final = ("api_key", "clean", "strict", "client_login")
_THIS_MACHINE: Final = ("127.0.0.1", "localhost", "::1")
_SECTIONS: Final = (
    "server",
    "admin",
    "providers",
    "routes",
    "models",
    "validate",
    "http",
    "prices",
    "agent",
    "ledger",
    "keys",
    "quotas",
)


def _check_login(name: str, table: Mapping[str, Any]) -> None:
    """Check that a client's login goes to its vendor alone: at the catalogue's address, or through this machine."""
    where = f"providers.{dotted(name)}"
    vendor = load_catalog().providers.get(name)
    if vendor is None or not vendor.has_logins:
        raise ConfigError(f"{where}.client_login: only for the vendor whose clients log in to it")
    for key in ("has_logins", "also", "region", "regions", "placeholders", "path"):
        if key in table:
            raise ConfigError(f"{where}.{key}: not beside client_login, which holds for the vendor's own address")
    found = split_url(str(table.get("base_url", "")))
    if found is not None and found[0].hostname not in _THIS_MACHINE:
        raise ConfigError(f"{where}.base_url: expected the vendor's own address beside client_login, or 127.0.0.1")


def key_variable(provider: Provider, environ: Mapping[str, str]) -> str | None:
    """Return the first of a provider's usual key variables that is set, or None."""
    return next((name for name in provider.api_key_env if environ.get(name, "").strip()), None)


def _parse(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        text = read_file(file, most=LARGEST_CONFIG).decode("utf-8-sig")
        if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
            raise ConfigError(f"expected at most {_MOST_DOTS} dots in a line")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"expected TOML: {problem}") from None
    except RecursionError:
        raise ConfigError("expected TOML that is nested less deeply") from None
    except FileNotFoundError:
        raise ConfigError("expected a configuration file, found none") from None
    except OSError as problem:
        raise ConfigError(f"cannot be read: {reason_of(problem)}") from None
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise ConfigError(f"expected UTF-8, got other bytes in line {line}") from None
    except ValueError:  # Python reads no integer of more than 4,300 digits
        raise ConfigError("expected numbers of at most 4,300 digits") from None


def _route(name: str, table: Mapping[str, Any], catalog: Catalog) -> RouteConfig:
    where = f"routes.{dotted(name)}"
    if "/" in name or not name:
        raise ConfigError(f"{where}: expected a name without '/'; provider/model needs no route")
    route = as_struct(table, RouteConfig, where)
    refuse_unknown(route.tool_policy, POLICY_KEYS, f"{where}.tool_policy")
    if not route.targets:
        raise ConfigError(f"{where}.targets: expected at least one provider/model, got none")
    for position, target in enumerate(route.targets):
        _check_target(target, f"{where}.targets[{position}]", catalog)
    return route


def _aliases(routes: Mapping[str, RouteConfig]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for name, route in routes.items():
        for position, alias in enumerate(route.aliases):
            where = f"routes.{dotted(name)}.aliases[{position}]"
            if not alias or alias == "*":
                raise ConfigError(f"{where}: expected a name")
            if alias in routes or alias in aliases:
                raise ConfigError(f"{where}: {alias[:80]!r} names routes.{dotted(aliases.get(alias, alias))} already")
            aliases[alias] = name
    return aliases


def _model(name: str, table: Mapping[str, Any], catalog: Catalog) -> ModelConfig:
    where = f"models.{dotted(name)}"
    _check_target(name, where, catalog)
    options = _subtable(table, "options", where)
    refuse_unknown(
        options, [field for field in Params.__struct_fields__ if field != "response_schema"], f"{where}.options"
    )
    set_fields = _subtable(table, "dialect", where)
    dialect = as_struct(set_fields, Dialect, f"{where}.dialect")
    model = as_struct(table, ModelConfig, where)
    refuse_unknown(model.tool_policy, POLICY_KEYS, f"{where}.tool_policy")
    return msgspec.structs.replace(model, dialect={name: getattr(dialect, name) for name in set_fields})


def _price(name: str, table: Mapping[str, Any], catalog: Catalog) -> Price:
    where = f"prices.{dotted(name)}"
    _check_target(name, where, catalog)
    if "*" in name:
        raise ConfigError(f"{where}: expected one provider/model, got a pattern, which only [models] takes")
    price = as_struct(table, Price, where)
    for tier, each in (("", price), *((f".tiers.{dotted(tier)}", each) for tier, each in price.tiers.items())):
        if each is not price and each.tiers:
            raise ConfigError(f"{where}{tier}.tiers: expected the tiers beside each other")
        for field in Price.__struct_fields__[:-1]:
            value = getattr(each, field)
            if value is not None and not (value.is_finite() and 0 <= value < _DEAREST):
                raise ConfigError(
                    f"{where}{tier}.{field}: expected US dollars per million tokens, got {str(value)[:40]}"
                )
    return price


# ---------------------------------------------------------------- checks


def read_table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of a document, empty if there is none. Raises ConfigError if it is not a table."""
    table = document.get(name, {})
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name}: expected a table, got {type(table).__name__}")
    return table


def _tables(document: Mapping[str, Any], name: str) -> dict[str, Mapping[str, Any]]:
    tables = read_table(document, name)
    return {key: _subtable(tables, key, name) for key in tables}


def _subtable(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{where}.{dotted(key)}: expected a table, got {type(value).__name__}")
    return value


def _check_target(target: str, where: str, catalog: Catalog) -> None:
    try:
        catalog.provider(split_target(target)[0])
    except UsageError as problem:
        raise ConfigError(f"{where}: {problem}") from None
