"""The configuration, `dragoman.toml`: where it is looked for, what it may contain, and the settings in force.

It is read from a given path, else from the one in `DRAGOMAN_CONFIG`, else from the user's configuration folder. It is
never read from the current folder, so that a cloned repository cannot set an endpoint or a key. Keys stand in it by
reference, `env:NAME` or `file:PATH`. Without a file the defaults, the catalogue and the usual key variables apply.
"""

from dragoman.config.admin import AdminConfig, AdminKey, AdminRole
from dragoman.config.agent import AgentConfig, AgentLimits, McpServer
from dragoman.config.files import LARGEST_CONFIG, read_file, reason_of
from dragoman.config.ledger import KeyConfig, LedgerConfig
from dragoman.config.limits import LimitsConfig
from dragoman.config.places import FILE_NAME, data_folder, default_path, state_folder
from dragoman.config.quotas import Quota, QuotaConfig
from dragoman.config.reading import PATH_VARIABLE, key_variable, load_config, read_tables
from dragoman.config.references import read_secret, split_address
from dragoman.config.settings import (
    MOST_RETRIES,
    Config,
    HttpConfig,
    ModelConfig,
    Order,
    Price,
    ProviderConfig,
    RouteConfig,
    ServerConfig,
    ToolsMode,
    ValidateConfig,
)
from dragoman.config.strict_tables import read_mcp_server

__all__ = [
    "AdminConfig", "AdminKey", "AdminRole", "AgentConfig", "AgentLimits", "McpServer",
    "FILE_NAME", "LARGEST_CONFIG", "MOST_RETRIES", "PATH_VARIABLE", "Config", "HttpConfig", "KeyConfig",
    "LedgerConfig", "LimitsConfig",
    "ModelConfig", "Order", "Price", "ProviderConfig", "Quota", "QuotaConfig",
    "RouteConfig", "ServerConfig", "ToolsMode", "ValidateConfig",
    "data_folder", "default_path", "key_variable", "load_config", "read_file", "read_mcp_server", "read_secret",
    "read_tables", "reason_of", "split_address", "state_folder",
]  # fmt: skip
