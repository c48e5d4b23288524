"""The gateways of the bench: how each is installed, configured, started and asked.

Every one listens on loopback and is asked for a model whose name tells the scripted provider what to do
(`mock-n200d5`: 200 pieces of arguments, 5 ms apart).
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

MOCK_PORT = 9000
MODELS = ("mock-n200d0", "mock-n200d5", "mock-n20d5", "mock-n100d50", "mock-n20d500")
KEY = "sk-bench-0123456789abcdef0123456789abcdef"
BEARER = f"Authorization: Bearer {KEY}"
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
URL = f"http://127.0.0.1:{MOCK_PORT}"

#: What `make bench-gateway` installs for a peer, from PyPI or npm.
PYTHON_PACKAGES = {"litellm": ["litellm[proxy]"], "tensorzero": ["tensorzero"], "rolter": ["rolter"]}
NODE_PACKAGES = {
    # With a newer @hono/node-server Portkey 1.15.2 answers 500 to every stream.
    "portkey": ["@portkey-ai/gateway", "@hono/node-server@1.13.8"]
}
PEERS = (*PYTHON_PACKAGES, *NODE_PACKAGES)


class ToolMode(NamedTuple):
    """A direction: client protocol to provider protocol. `model` has the scripted provider's model as `{}`."""

    name: str
    path: str
    model: str
    headers: tuple[str, ...] = ()

    @property
    def is_messages(self) -> bool:
        return self.path == MESSAGES


class Gateway(NamedTuple):
    """One gateway. `port` 0: it says in its output which one it took, after `BASE http://127.0.0.1:`."""

    name: str
    command: tuple[str, ...]
    port: int
    ways: tuple[ToolMode, ...]
    environment: tuple[tuple[str, str], ...] = ()
    start_seconds: float = 60.0


NGINX = """worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.err;
events {{ worker_connections 16384; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
 uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; client_body_buffer_size 256k;
 upstream up {{ server 127.0.0.1:{mock}; keepalive 8192; keepalive_requests 100000000; }}
 keepalive_requests 100000000;
 server {{ listen 127.0.0.1:4201 backlog=8192; location / {{ proxy_pass http://up; proxy_http_version 1.1;
 proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 300s; }} }} }}
"""
OURS = f"""[providers.full]
protocol = "openai-chat"
base_url = "{URL}/v1"
[providers.clean]
protocol = "openai-chat"
base_url = "{URL}/v1"
clean = true
"""
TENSORZERO_RUN = """import asyncio, sys
from tensorzero import _start_http_gateway
async def main():
    gateway = await _start_http_gateway(config_file=sys.argv[1], clickhouse_url=None, postgres_url=None,
                                        valkey_url=None, async_setup=True)
    print("BASE", gateway.base_url, flush=True)
    await asyncio.sleep(1e6)
asyncio.run(main())
"""


def write_configurations(folder: Path) -> None:
    """Write what every gateway reads at its start."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, mock=MOCK_PORT))
    (folder / "dragoman.toml").write_text(OURS)
    (folder / "litellm.yaml").write_text(_litellm())
    (folder / "rolter.toml").write_text(_rolter())
    (folder / "tensorzero.toml").write_text(_tensorzero())
    (folder / "tensorzero_run.py").write_text(TENSORZERO_RUN)


def _litellm() -> str:
    lines = ["model_list:"]
    for model in MODELS:  # a real name upstream: unknown ones take a slower path there
        parameters = f'model: "openai/gpt-4o", api_base: "{URL}/{model}/v1", api_key: sk-x'
        lines.append(f'  - {{model_name: "{model}", litellm_params: {{{parameters}}}}}')
    lines.append("litellm_settings: {drop_params: true, use_chat_completions_url_for_anthropic_messages: true}")
    lines.append("router_settings: {disable_cooldowns: true, num_retries: 0}")
    return "\n".join(lines) + "\n"


def _rolter() -> str:
    head = '[server]\nhost = "127.0.0.1"\nport = 4205\n[[providers]]\nname = "oai"\nkind = "openai_compatible"\n'
    text = f'{head}api_base = "{URL}"\n'
    for model in MODELS:
        text += f'[[routes]]\nmodel = "{model}"\nstrategy = "round_robin"\n'
        text += f'[[routes.targets]]\nprovider = "oai"\nmodel = "{model}"\n'
    return text


def _tensorzero() -> str:
    text = "[gateway]\nobservability.enabled = false\n"
    for model in MODELS:
        text += f'[models."{model}"]\nrouting = ["p"]\n[models."{model}".providers.p]\ntype = "openai"\n'
        text += f'model_name = "{model}"\napi_base = "{URL}/v1/"\napi_key_location = "none"\n'
    return text


def gateways(folder: Path, peers: Path) -> dict[str, Gateway]:
    """All gateways by name. `folder` has the configurations, `peers` what was installed."""
    anthropic = ("anthropic-version: 2023-06-01",)
    passing = ToolMode("OpenAI → OpenAI", CHAT, "{}")
    ours = str(Path(sys.executable).with_name("dragoman"))
    portkey = peers / "portkey/node_modules/@portkey-ai/gateway/build/start-server.js"
    portkey_headers = (f"x-portkey-custom-host: {URL}/v1", "x-portkey-provider: openai", "Authorization: Bearer x")
    every = (
        Gateway("direct", (), MOCK_PORT, (passing,)),
        Gateway("nginx", ("nginx", "-c", f"{folder}/nginx.conf", "-p", str(folder)), 4201, (passing,)),
        Gateway(
            "dragoman",
            (ours, "serve", "--config", f"{folder}/dragoman.toml", "--port", "4209"),
            4209,
            (
                ToolMode("OpenAI → OpenAI, bytes pass", CHAT, "clean/{}"),
                ToolMode("OpenAI → OpenAI, all stages", CHAT, "full/{}"),
                ToolMode("Anthropic → OpenAI, all stages", MESSAGES, "full/{}", anthropic),
            ),
        ),
        Gateway(
            "rolter",
            (f"{peers}/rolter/bin/rolter", "gateway", "-c", f"{folder}/rolter.toml"),
            4205,
            (passing, ToolMode("Anthropic → OpenAI", MESSAGES, "{}")),
            (("RUST_LOG", "error"),),
        ),
        Gateway(
            "tensorzero",
            (f"{peers}/tensorzero/bin/python", f"{folder}/tensorzero_run.py", f"{folder}/tensorzero.toml"),
            0,
            (ToolMode("OpenAI → OpenAI", "/openai/v1/chat/completions", "tensorzero::model_name::{}"),),
            (("RUST_LOG", "error"),),
        ),
        Gateway(
            "portkey",
            ("node", str(portkey), "--port=4206", "--headless"),
            4206,
            (ToolMode("OpenAI → OpenAI", CHAT, "{}", portkey_headers),),
            (("TRUSTED_CUSTOM_HOSTS", "127.0.0.1"), ("NODE_ENV", "production")),
        ),
        Gateway(
            "litellm",
            (f"{peers}/litellm/bin/litellm", "--config", f"{folder}/litellm.yaml", "--host", "127.0.0.1",
             "--port", "4204", "--telemetry", "False", "--num_workers", "1"),
            4204,
            (
                ToolMode("OpenAI → OpenAI", CHAT, "{}", (BEARER,)),
                ToolMode("Anthropic → OpenAI", MESSAGES, "{}", (BEARER, *anthropic)),
            ),
            (("LITELLM_LOCAL_MODEL_COST_MAP", "True"), ("LITELLM_MASTER_KEY", KEY), ("LITELLM_LOG", "ERROR"),
             ("DO_NOT_TRACK", "1")),
            180.0,
        ),
    )  # fmt: skip
    return {gateway.name: gateway for gateway in every}


def body(way: ToolMode, model: str, *, stream: bool, more: int = 0) -> bytes:
    """A request with one tool, of about a kilobyte and `more` bytes."""
    schema = {"path": {"type": "string"}, "n": {"type": "integer"}, "text": {"type": "string"}}
    parameters = {"type": "object", "properties": schema, "required": ["path", "text"]}
    named = {"name": "write_file", "description": "Write text to a file"}
    system = "You are a helpful agent. " * 20
    user = {"role": "user", "content": "Write a file with the words of the poem." + "x y z " * (more // 6)}
    fields: dict[str, object] = {"model": way.model.format(model), "max_tokens": 4096, "stream": stream}
    if way.is_messages:
        fields |= {"system": system, "messages": [user], "tools": [{**named, "input_schema": parameters}]}
    else:
        tool = {"type": "function", "function": {**named, "parameters": parameters}}
        fields |= {"messages": [{"role": "system", "content": system}, user], "tools": [tool]}
        if stream:
            fields["stream_options"] = {"include_usage": True}
    return json.dumps(fields).encode()


# ---------------------------------------------------------------- installing


def install(name: str, peers: Path) -> str:
    """Install a peer, unless it is there; gives what went wrong, or ""."""
    place = peers / name
    done = place / ".installed"
    if done.exists():
        return ""
    place.mkdir(parents=True, exist_ok=True)
    if name in NODE_PACKAGES:
        problem = _install_node(name, place)
    else:
        venv.create(place, with_pip=True)
        command = [str(place / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        problem = _run([*command, *PYTHON_PACKAGES[name]])
    if not problem:
        done.touch()
    return problem


def _install_node(name: str, place: Path) -> str:
    if shutil.which("npm") is None:
        return "npm is missing"
    (place / "package.json").write_text("{}")
    problem = _run(["npm", "install", "--silent", *NODE_PACKAGES[name]], cwd=place)
    # Portkey brings a newer one of its own.
    shutil.rmtree(place / "node_modules/@portkey-ai/gateway/node_modules/@hono/node-server", ignore_errors=True)
    return problem


def _run(command: list[str], cwd: Path | None = None) -> str:
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=os.environ)
    return "" if result.returncode == 0 else (result.stderr.strip().splitlines() or ["it failed"])[-1][:200]


def build(folder: Path) -> str:
    """Compile the scripted provider and the load generator; gives what went wrong, or ""."""
    folder.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).parent
    for name in ("mock", "load"):
        if shutil.which("gcc") is None:
            return "gcc is missing; on Debian and Ubuntu: apt install gcc libc6-dev"
        problem = _run(["gcc", "-O2", "-o", str(folder / name), str(here / f"{name}.c")])
        if problem:
            return problem
    return ""
