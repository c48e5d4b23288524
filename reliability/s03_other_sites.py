"""S3: a web page of another site cannot use the gateway, whatever name it points at this machine."""

from __future__ import annotations

import asyncio
import http.server
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from dragoman.gateway.pages.models_and_tokens import pages_of
from dragoman.protocols import PROTOCOLS
from reliability.caller import Caller, rendered, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider, whole
from reliability.row import Result, Scale

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD")
BAD_HOSTS = (
    "evil.test", "evil.test:4141", "0.0.0.0", "0.0.0.0:4141", "localhost.evil.test", "127.0.0.1.nip.io", "",
    "localhost@evil.test", "evil.test#localhost", "127.0.0.1.", "[::ffff:10.0.0.1]", "10.0.0.1", "169.254.169.254",
    "localhost evil.test", "localhost,evil.test",
)  # fmt: skip
BAD_ORIGINS = (
    "https://evil.test", "http://evil.test:4141", "null", "http://localhost.evil.test", "http://evil.test/localhost",
    "file://", "chrome-extension://abcdefghijklmnop", "http://127.0.0.1.nip.io", "http://0.0.0.0:4141", "localhost",
    "http://localhost@evil.test", "",
)  # fmt: skip
#: Paths of the gateway beyond protocols and discovery, and some that are nobody's.
FURTHER = ("/livez", "/readyz", "/metrics", "/", "/nothing", "/v1/nothing", "/api/nothing", "/..", "//", "/admin")


def routes() -> list[str]:
    """Every path that is served, with a model where one belongs."""
    patterns = [pattern for protocol in PROTOCOLS.values() for _, pattern in protocol.routes]
    patterns += [page.pattern for page in pages_of(PROTOCOLS)]
    return list(dict.fromkeys([*(pattern.replace("{model}", "model-1") for pattern in patterns), *FURTHER]))


def measure(scale: Scale) -> Iterator[Result]:
    """Every route with every method and every wrong Host and Origin; then a real browser."""
    with Provider(whole(b"{}")) as provider, Gateway(providers(provider.url)) as gateway:
        yield asyncio.run(grid(gateway, provider))
        provider.forget()
        yield browser(gateway, provider)


async def grid(gateway: Gateway, provider: Provider) -> Result:
    """Wrong Hosts and wrong Origins, raw."""
    provider.forget()
    wrong = [{"host": host} for host in BAD_HOSTS] + [{"origin": origin} for origin in BAD_ORIGINS]
    body = b'{"model":"openai-chat/model-1","messages":[{"role":"user","content":"Hi"}]}'
    reached, tried, shared = [], 0, []
    for path in routes():
        for method in METHODS:
            for fields in wrong:
                tried += 1
                caller = await Caller.connect(gateway.port)
                await caller.send(rendered(path, body if method == "POST" else b"", method=method, headers=fields))
                answer = await caller.answer(has_body=method != "HEAD")
                caller.close()
                if answer.status not in (400, 403):
                    reached.append(f"{method} {path} {fields}: {answer.status}")
                if any(name.startswith("access-control-") for name in answer.headers):
                    shared.append(f"{method} {path} {fields}")
    for line in [*reached, *shared][:20]:
        print("   ", line)
    asked = sum(asked.head.startswith(b"POST") for asked in provider.asked)
    measured = (
        f"{len(reached)} of {tried} got past 403 ({len(routes())} routes × {len(METHODS)} methods × {len(wrong)} heads)"
        f", {asked} reached a provider, {len(shared)} CORS headers"
    )
    return Result("S3", "0 reach a handler", measured, not reached and not asked and not shared)


_PAGE = """<!doctype html><script>
const gateway = "http://127.0.0.1:GATEWAY", rebound = "http://rebound.test:GATEWAY";
const body = JSON.stringify(BODY);
const seen = {};
async function attempt(name, url, options) {
  try {
    const answer = await fetch(url, options);
    seen[name] = answer.type === "opaque" ? "opaque" : answer.status + " " + (await answer.text()).slice(0, 60);
  } catch (problem) { seen[name] = "blocked"; }
}
(async () => {
  await attempt("read", gateway + "/api/tags");
  await attempt("read without cors", gateway + "/api/tags", {mode: "no-cors"});
  await attempt("ask", gateway + "/v1/chat/completions", {method: "POST", body});
  await attempt("ask as text", gateway + "/v1/chat/completions", {method: "POST", body, mode: "no-cors"});
  await attempt("ask ollama", gateway + "/api/chat", {method: "POST", body, mode: "no-cors"});
  await attempt("ask with json", gateway + "/v1/chat/completions",
                {method: "POST", body, headers: {"content-type": "application/json"}});
  await attempt("delete", gateway + "/api/delete", {method: "DELETE", body});
  await attempt("rebound read", rebound + "/api/tags");
  await attempt("rebound ask", rebound + "/v1/chat/completions", {method: "POST", body, mode: "no-cors"});
  const form = document.createElement("form");
  form.method = "POST"; form.action = gateway + "/v1/chat/completions"; form.enctype = "text/plain"; form.target = "f";
  const field = document.createElement("input");
  field.name = body.slice(0, -1) + ',"x":"'; field.value = '"}'; form.append(field);
  const frame = document.createElement("iframe"); frame.name = "f"; document.body.append(frame, form); form.submit();
  await new Promise(done => setTimeout(done, 500));
  await fetch("/report", {method: "POST", body: JSON.stringify(seen)});
})();
</script><body>"""


def browser(gateway: Gateway, provider: Provider) -> Result:
    """A page of another site in Chromium; names are pointed at this machine as a rebinding DNS server would."""
    goal = "a page in Chromium reads nothing and asks no model"
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        return Result("S3", goal, "chromium is missing: apt-get install chromium; only the raw heads were tried", False)
    report = visited(program, gateway.port)
    read = {name: found for name, found in report.items() if found not in ("blocked", "opaque") and found[:3] != "403"}
    asked = sum(asked.head.startswith(b"POST") for asked in provider.asked)
    print("   ", json.dumps(report))
    measured = f"{len(report)} attempts of the page: {len(read)} read, {asked} asked a model"
    return Result("S3", goal, measured, len(report) >= 9 and not read and not asked)


def visited(program: str, port: int) -> dict[str, str]:
    """What the page could do; nothing when it did not come to its end."""
    reports: list[dict[str, str]] = []
    arrived = threading.Event()
    request = json.loads(spoken("openai-chat", "openai-chat/model-1")[1])
    page = _PAGE.replace("GATEWAY", str(port)).replace("BODY", json.dumps(request)).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(page)

        def do_POST(self) -> None:
            reports.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.answer(b"")
            arrived.set()

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--no-first-run",
            "--disable-dev-shm-usage", "--host-resolver-rules=MAP *.test 127.0.0.1",
            # Newer browsers shield this machine by themselves; the gateway must not count on that.
            "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessChecks",
            f"http://evil.test:{server.server_port}/",
        ]  # fmt: skip
        process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        arrived.wait(40)
        process.terminate()
        process.wait(10)
    server.shutdown()
    server.server_close()
    return reports[0] if reports else {}
