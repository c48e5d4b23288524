"""S25: what proxies, servers and keys own in a client's head reaches neither the provider nor the answer, and no head
breaks its frame. What a vendor's client says to its vendor does reach a provider of the same protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from dragoman.protocols import PROTOCOLS
from reliability.caller import Answer, Caller, ask, rendered, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head
from reliability.r01_truncation import wire
from reliability.row import Result, Scale

CANARY = "canary-of-a-header"
#: Hop by hop, said by proxies, internal to other gateways, and credentials.
NAMES = (
    "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer",
    "Upgrade", "HTTP2-Settings", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
    "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Access-Token",
    "X-Real-IP", "X-Client-IP", "X-Original-URL", "X-Original-Host", "X-Rewrite-URL", "X-Host", "X-Remote-User",
    "X-Auth-Request-User", "X-Authenticated-User", "X-User", "X-User-Id", "X-Tenant-Id", "X-Admin", "X-Internal",
    "X-Internal-Key", "X-Debug", "X-Dragoman-Target", "X-Dragoman-Key", "Dragoman-Route", "X-Portkey-Provider",
    "X-Portkey-Config", "X-Portkey-Custom-Host", "X-LiteLLM-Api-Base", "X-LiteLLM-Key", "Helicone-Auth",
    "Helicone-Target-Url", "X-Base-Url", "X-Api-Base", "X-Provider", "X-Provider-Base-Url", "X-Upstream-Url",
    "X-Target-Url", "X-Proxy-Url", "Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "OpenAI-Api-Key",
    "OpenAI-Organization", "OpenAI-Project", "X-Goog-User-Project", "X-Amz-Security-Token", "X-Amz-Date", "Cookie",
    "Cookie2", "Set-Cookie", "Origin-Agent-Cluster", "Referer", "Via", "Max-Forwards", "Expect-CT", "DNT", "Range",
    "If-Match", "If-None-Match", "If-Modified-Since", "Content-Location", "Content-Language", "Content-MD5", "Digest",
    "Signature", "Want-Digest", "Accept-Charset", "Accept-Datetime", "Early-Data", "Save-Data",
    "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-WebSocket-Key", "Sec-WebSocket-Protocol", "Sec-Ch-Ua", "X-Requested-With",
    "X-CSRF-Token", "X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method", "X-Request-Id", "Request-Id",
    "X-Correlation-Id", "X-B3-TraceId", "X-Cloud-Trace-Context", "X-Amzn-Trace-Id", "B3", "CF-Connecting-IP",
    "CF-Access-Jwt-Assertion", "CF-Access-Client-Secret", "True-Client-IP", "Fastly-Client-IP", "X-Azure-FDID",
    "X-Envoy-Original-Path", "X-Envoy-Upstream-Rq-Timeout-Ms", "X-Envoy-Internal", "X-Envoy-Decorator-Operation",
    "X-Accel-Redirect", "X-Accel-Buffering", "X-Sendfile", "X-Vault-Token", "X-Gitlab-Token", "X-Hub-Signature",
    "From", "Pragma", "Warning", "Idempotency-Key", "X-Idempotency-Key", "Anthropic-Organization-Id",
    "X-Wss-Key", "X-Client-Cert", "X-SSL-Client-Verify", "X-SSL-Client-S-DN", "X-ARR-ClientCert", "Ssl-Client-Cert",
    "X-Client-Data", "X-Http-Path-Override", "X-Cluster-Client-IP", "X-ProxyUser-Ip", "X-Wap-Profile", "X-UIDH",
    "X_Forwarded_For", "X_Real_Ip", "X_Remote_User", "X_SSL_Client_Verify", "X_Original_Url", "X_Api_Key",
    "Content_Length", "Transfer_Encoding", "X-Amzn-Oidc-Data", "X-Vercel-Forwarded-For", "Fly-Client-IP",
    "X-Envoy-External-Address", "X-B3-Sampled", "Content-Disposition", "If-Range",
)  # fmt: skip
#: What vendors' clients say of themselves and of what their body asks for.
OWN = (
    "X-Stainless-Os", "X-Stainless-Retry-Count", "User-Agent", "Accept-Language", "OpenAI-Beta", "X-App",
    "Anthropic-Dangerous-Direct-Browser-Access", "Session-Id", "session_id", "Conversation-Id", "X-Title",
    "HTTP-Referer", "X-Codex-Window", "Originator", "X-Any-Other",
)  # fmt: skip
#: Heads that are no HTTP, or would be another head behind a careless server.
BROKEN = (
    b"X-A: 1\rX-B: 2", b"X-A: 1\nX-B: 2\r\nX-C: 3\x00", b"X-A: a\x00b", b"X A: 1", b"X-A : 1", b": empty", b"X-A\r\n",
    b"X-A: 1\r\n folded", b"X-A: 1\r\n\tfolded", b"\x00: 1", b"X-\xff: 1", b"X-A: 1\r\n\rX-B: 2", b"X-A: \x7f",
    b"X-A: \x0b", b"(X-A): 1", b"X-A: 1\r\rX-B: 2",
)  # fmt: skip
#: Of a provider's answer: kept from the client.
FROM_PROVIDER = (
    "set-cookie", "server", "x-internal-host", "via", "x-powered-by", "alt-svc", "strict-transport-security",
    "access-control-allow-origin", "x-litellm-model-api-base", "openai-organization", "proxy-authenticate", "trailer",
    "upgrade", "location", "refresh", "link", "report-to", "nel", "content-security-policy", "x-envoy-upstream",
)  # fmt: skip


def measure(scale: Scale) -> Iterator[Result]:
    """Each header to each of the five protocols; broken heads; what a provider's head leaks."""
    yield from asyncio.run(_measure())


async def _measure() -> list[Result]:
    with Provider() as provider, Gateway(providers(provider.url)) as gateway:
        said = {name: answering(name) for name in BASE}
        leaked, lost, tried = [], [], 0
        for name in (*NAMES, *OWN):
            for client in BASE:
                tried += name in NAMES
                script = provider.script(said[client])
                path, body = spoken(client, f"{client}/{script}")
                await ask(gateway.port, path, body, headers={name: f"{CANARY}"})
                asked = provider.of(script)
                has_it = asked is not None and CANARY.encode() in asked.head + asked.body
                if has_it and name in NAMES:
                    leaked.append(f"{name} from {client}")
                if not has_it and name in OWN:
                    lost.append(f"{name} of {client} is lost")
        broken = [line for line in BROKEN if await broken_head(gateway.port, line) != 400]
        shown = await shown_to_clients(gateway, provider)
        for line in [*leaked, *lost, *map(repr, broken), *shown]:
            print("   ", line)
        return [
            Result(
                "S25", "0 of ≥ 150 headers reach a provider",
                f"{len(leaked)} of {tried} did ({len(NAMES)} headers × {len(BASE)} protocols)", not leaked,
            ),
            Result(
                "S25", "what clients say to their vendor reaches it",
                f"{len(OWN) * len(BASE) - len(lost)} of {len(OWN) * len(BASE)} did", not lost,
            ),
            Result(
                "S25", "a broken head gets 400", f"{len(BROKEN) - len(broken)} of {len(BROKEN)} did", not broken
            ),
            Result(
                "S25", "0 headers of a provider are copied blindly",
                f"{len(shown)} of {len(FROM_PROVIDER)} × {len(BASE)} protocols reached a client", not shown,
            ),
        ]  # fmt: skip


def answering(protocol: str, *extra: str) -> list[Step]:
    """A whole streamed answer."""
    return [head(200, PROTOCOLS[protocol].stream_type, *extra), chunk(wire(protocol, "text")), END]


async def broken_head(port: int, line: bytes) -> int:
    """The status of a request with this line in its head; 400 too when the connection is closed without one."""
    path, body = spoken("openai-chat", "openai-chat/model-1")
    whole = rendered(path, body)
    first, _, rest = whole.partition(b"\r\n")
    caller = await Caller.connect(port)
    try:
        await caller.send(first + b"\r\n" + line + b"\r\n" + rest)
        answer: Answer = await asyncio.wait_for(caller.answer(), 10)
    except OSError:
        return 400
    except TimeoutError:
        return 0
    finally:
        caller.close()
    return answer.status or 400


async def shown_to_clients(gateway: Gateway, provider: Provider) -> list[str]:
    """Headers of a provider that a client gets to see."""
    found = []
    extra = [f"{name}: {CANARY}" for name in FROM_PROVIDER]
    for client in BASE:
        for stream in (True, False):
            script = provider.script(answering(client, *extra))
            path, body = spoken(client, f"{client}/{script}", stream=stream)
            answer = await ask(gateway.port, path, body)
            found += [f"{client}: {name}" for name, value in answer.headers.items() if CANARY in value]
    return found
