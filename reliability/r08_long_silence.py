"""R8: a model that thinks for minutes is not cut off by the proxies between the client and the gateway."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dragoman
from conversations import reply
from dragoman.protocols import PROTOCOLS
from reliability.caller import Caller, rendered, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head, wire
from reliability.row import Result, Scale

_NGINX = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 512; }}
http {{
  access_log {folder}/requests {format};
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  proxy_read_timeout {idle}s; send_timeout {idle}s; client_max_body_size 64m;
  upstream gateway {{ server 127.0.0.1:{to}; keepalive 8; }}
  server {{ listen 127.0.0.1:{port};
    location / {{ proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host localhost; }} }}
}}
"""
_HAPROXY = """global
  log stdout format raw local0
defaults
  mode http
  log global
  option httplog
  timeout connect 5s
  timeout client {idle}s
  timeout server {idle}s
frontend here
  bind 127.0.0.1:{port}
  default_backend gateway
backend gateway
  http-reuse always
  http-request set-header host localhost
  server gateway 127.0.0.1:{to}
"""


def measure(scale: Scale) -> Iterator[Result]:
    """Twenty streams of all protocols through each proxy, at once."""
    silence, idle = scale.pick(180, 40), scale.pick(60, 20)
    for program, package in (("haproxy", "haproxy"), ("nginx", "nginx-light")):
        goal = f"20 of 20 survive {silence} s of silence behind {program} at {idle} s"
        if shutil.which(program) is None:
            yield Result("R8", goal, f"{program} is missing: apt-get install {package}", False)
            continue
        survived, pings = asyncio.run(through(program, silence=silence, idle=idle))
        note = " (scaled down; the full run has 180 s at 60 s)" if scale.quick else ""
        measured = f"{survived} of 20, {pings} keep-alives seen{note}"
        yield Result("R8", goal, measured, survived == 20 and pings >= 20)


async def through(program: str, *, silence: float, idle: int) -> tuple[int, int]:
    """How many of twenty streams arrive whole, and how many pieces came while nothing of the answer did."""
    settings = "[http]\nfirst_event_seconds = 400\nsilence_seconds = 400"
    with (
        Provider() as provider,
        Gateway(providers(provider.url, settings)) as gateway,
        proxy(program, gateway.port, idle=idle) as port,
    ):
        clients = [list(BASE)[number % len(BASE)] for number in range(20)]
        found = await asyncio.gather(*(one(port, provider, client, silence) for client in clients))
    return sum(whole for whole, _ in found), sum(pings for _, pings in found)


async def one(port: int, provider: Provider, client: str, silence: float) -> tuple[bool, int]:
    steps: list[Step] = [
        head(200, PROTOCOLS[client].stream_type), float(silence), chunk(wire(client, reply("single"))), END,
    ]  # fmt: skip
    caller = await Caller.connect(port)
    await caller.send(rendered(*spoken(client, f"{client}/{provider.script(steps)}")))
    began = time.monotonic()
    answer = await asyncio.wait_for(caller.answer(), silence + 30)
    caller.close()
    seen = dragoman.decode(answer.body, client)  # type: ignore[arg-type]
    pings = sum(when - began < silence - 1 for when, _ in answer.pieces)
    return answer.whole and [call.values() for call in seen.tool_calls] == [{"city": "Paris"}], pings


def settings_of(program: str, *, folder: str, port: int, to: int, idle: int) -> str:
    """The configuration of a proxy that stands before the gateway."""
    if program == "nginx":
        return _NGINX.format(folder=folder, port=port, to=to, idle=idle, format="combined")
    return _HAPROXY.format(port=port, to=to, idle=idle)


@contextmanager
def proxy(program: str, to: int, *, idle: int) -> Iterator[int]:
    """Run a proxy until the block ends; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "settings"
        file.write_text(settings_of(program, folder=folder, port=port, to=to, idle=idle), encoding="ascii")
        command = (
            ["nginx", "-c", str(file), "-p", folder] if program == "nginx" else ["haproxy", "-db", "-f", str(file)]
        )
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen([shutil.which(program) or program, *command[1:]], stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and not _listens(port):
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            process.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
