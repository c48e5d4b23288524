"""S9, S10: no client makes the gateway connect anywhere, by no address in a request, no image, and no redirect."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

from dragoman.protocols import PROTOCOLS
from dragoman.types import Media, Message, Params, Request, Text
from reliability import PROJECT
from reliability.caller import ask, rendered, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head
from reliability.r01_truncation import wire
from reliability.row import Result, Scale
from reliability.watched import Watched, is_possible

_PREFIX = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}
_NAME_SERVICE = 53
_CATALOG = PROJECT / "src" / "dragoman" / "providers" / "catalog.toml"
#: Other names of fields in which gateways take an address.
FIELDS = ("base_url", "api_base", "api_url", "endpoint", "url", "host", "baseURL", "custom_host", "provider", "target")
HEADERS = ("x-base-url", "x-api-base", "x-portkey-custom-host", "helicone-target-url", "x-target-url", "x-upstream-url")


def addresses(port: int) -> list[str]:
    """Spellings of this machine, of private networks and of metadata services; `port` is a canary's."""
    here = [
        "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "017700000001", "127.0.0.1.",
        "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "[64:ff9b::7f00:1]", "0",
        "0.0.0.0", "127.0.0.1.nip.io", "localtest.me", "user@127.0.0.1", "evil.test@127.0.0.1", "127.0.0.1#evil.test",
        "①②⑦.⓪.⓪.①", "LOCALHOST", "box.local",
    ]  # fmt: skip
    there = [
        "169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", "100.100.100.200", "10.0.0.1", "192.168.0.1",
        "172.16.0.1",
    ]  # fmt: skip
    return [f"http://{host}:{port}/latest/meta-data" for host in here] + [f"http://{host}/latest" for host in there]


def measure(scale: Scale) -> Iterator[Result]:
    """Every address in every place, then as an image in every protocol; what the kernel saw is what counts."""
    if not is_possible():
        yield Result("S9", "can be measured", "strace is missing: apt-get install strace", False)
        return
    with socket.create_server(("127.0.0.1", 0)) as canary, Provider() as provider:
        canary.setblocking(False)
        port = canary.getsockname()[1]
        environ = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "https_proxy"), f"http://127.0.0.1:{port}")
        with Gateway(providers(provider.url), environ=environ) as gateway, Watched(gateway.pid) as watched:
            tried = asyncio.run(everywhere(gateway, provider, port))
            found = strangers(watched, provider)
            yield verdict("S9", "0 connects to a client's address", found, tried, canary, gateway)
            tried = asyncio.run(redirected(gateway, provider, port))
            found = strangers(watched, provider) - found
            yield verdict("S9", "0 redirects followed", found, tried, canary, gateway)
            tried = asyncio.run(pictures(gateway, provider, port))
            yield verdict(
                "S10", "0 connects to a picture's address", strangers(watched, provider), tried, canary, gateway
            )
            asyncio.run(ask(gateway.port, *spoken("openai-chat", "openai-chat/model-1")))
            asked = any(asked.head.startswith(b"POST") for asked in provider.asked[-2:])
            seen = ("127.0.0.1", provider.port) in watched.connections()
            yield from fetching(scale)
            yield Result("S9", "what watches does see a connect", f"the provider's own: {seen}", seen and asked)


def fetching(scale: Scale) -> Iterator[Result]:
    """The same with every public host allowed for pictures: what is not public is not connected to all the same."""
    with Provider() as provider:
        settings = '[http]\nimage_hosts = ["*"]\nretries = 0\n'
        with Gateway(providers(provider.url, settings)) as gateway, Watched(gateway.pid) as watched:
            tried = asyncio.run(fetched(gateway))
            found = {place for place in strangers(watched, provider) if place[1] != _NAME_SERVICE}
    shown = f": {sorted(found)[:5]}" if found else ""
    measured = f'{len(found)} strange addresses in {tried} cases with image_hosts = ["*"]{shown}; names are looked up'
    yield Result(
        "S10", "0 connects to what is not public", measured, not found and gateway.process.returncode in (0, None)
    )


async def fetched(gateway: Gateway) -> int:
    """Pictures that a server takes as data only, at addresses of this machine and of private networks."""
    slots = asyncio.Semaphore(10)

    async def one(client: str, url: str) -> None:
        async with slots:
            question = Message("user", (Text("What is this?"), Media("image", "image/png", url=url)))
            request = Request("ollama-chat/model-1", (question,), params=Params(max_tokens=100), stream=True)
            sent = PROTOCOLS[client].render_request(request).http
            path = sent.path if sent.path.startswith("/v1/") else _PREFIX.get(client, "") + sent.path
            await ask(gateway.port, path, sent.body)

    urls = [
        f"{scheme}{address[4:]}" for port in (80, 443) for address in addresses(port) for scheme in ("http", "https")
    ]
    clients = ("openai-chat", "anthropic-messages", "openai-responses", "gemini-generate")
    await asyncio.gather(*(one(client, url) for url in urls for client in clients))
    return len(urls) * len(clients)


def strangers(watched: Watched, provider: Provider) -> set[tuple[str, int]]:
    """What was connected to beside the provider, and the places of this machine where the gateway looks for model
    servers once in a while; no case names one of these."""
    ours = {provider.port, *(int(port) for port in re.findall(r"//127\.0\.0\.1:(\d+)", _CATALOG.read_text("utf-8")))}
    return {(host, port) for host, port in watched.connections() if host != "127.0.0.1" or port not in ours}


def verdict(
    id: str, goal: str, found: set[tuple[str, int]], tried: int, canary: socket.socket, gateway: Gateway
) -> Result:
    knocks = 0
    try:
        while canary.accept():
            knocks += 1
    except BlockingIOError:
        pass
    shown = f": {sorted(found)[:5]}" if found else ""
    measured = f"{len(found)} strange addresses and {knocks} knocks at the canary in {tried} cases{shown}"
    return Result(id, goal, measured, not found and not knocks and gateway.is_running)


async def everywhere(gateway: Gateway, provider: Provider, port: int) -> int:
    """Each address as a field, a header, a model, a path and a query."""
    provider.default = answering("openai-chat")
    tried = 0
    for number, url in enumerate(addresses(port)):
        clients = list(BASE)
        client = clients[number % len(clients)]
        path, body = spoken(client, "openai-chat/model-1")
        field = FIELDS[number % len(FIELDS)]
        fields: dict[str, Any] = json.loads(body) | {field: url, "extra_body": {field: url}, "metadata": {field: url}}
        header = {HEADERS[number % len(HEADERS)]: url} if url.isascii() else {}
        await ask(gateway.port, path, json.dumps(fields).encode())
        await ask(gateway.port, path, body, headers=header)
        await ask(gateway.port, f"{path}{'&' if '?' in path else '?'}{field}=http%3A%2F%2F127.0.0.1%3A{port}", body)
        for model in (url, f"openai-chat/{url}", f"openai-chat@{url}", f"../{url}"):
            await ask(gateway.port, *spoken("openai-chat", model))
            tried += 1
        absolute = rendered(url if url.isascii() else "http://localhost/", body)
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(absolute.replace(b"connection: keep-alive", b"connection: close"))
        await asyncio.wait_for(reader.read(100), 5)
        writer.close()
        tried += 4
    return tried


async def redirected(gateway: Gateway, provider: Provider, port: int) -> int:
    """A provider that sends its caller elsewhere."""
    tried = 0
    for status in (301, 302, 303, 307, 308):
        for client in BASE:
            for url in (f"http://127.0.0.1:{port}/", "http://169.254.169.254/latest", "//evil.test/x"):
                steps: list[Step] = [head(status, "text/html", f"location: {url}"), END]
                await ask(gateway.port, *spoken(client, f"{client}/{provider.script(steps)}"))
                tried += 1
    return tried


async def pictures(gateway: Gateway, provider: Provider, port: int) -> int:
    """Each address as a picture, from a client of each protocol to a provider of each that takes bytes or addresses."""
    tried = 0
    for url in [f"{scheme}{address[4:]}" for address in addresses(port) for scheme in ("http", "https", "ftp", "file")]:
        for client in BASE:
            question = Message("user", (Text("What is this?"), Media("image", "image/png", url=url)))
            for name in ("ollama-chat", client):
                script = provider.script(answering(name))
                request = Request(f"{name}/{script}", (question,), params=Params(max_tokens=100), stream=True)
                sent = PROTOCOLS[client].render_request(request).http
                path = sent.path if sent.path.startswith("/v1/") else _PREFIX.get(client, "") + sent.path
                await ask(gateway.port, path, sent.body)
                tried += 1
    return tried


def answering(protocol: str) -> list[Step]:
    return [head(200, PROTOCOLS[protocol].stream_type), chunk(wire(protocol, "text")), END]
