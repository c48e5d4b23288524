"""Validate the embedded model, write its page, and let a route fall over from a broken provider to it.

Writes `validation.html` (or the path that is given). Exit status 1 when the page or the fallback did not come about;
what the small model cannot do is no failure here.
"""

import argparse
import http.server
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dragoman
from dragoman.client import Client
from dragoman.config import load_config
from dragoman.types import Params

TARGET = "embedded/smollm2"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@contextmanager
def broken_provider() -> Iterator[str]:
    """A server that takes every request, begins to answer, and breaks off before the first word."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", "1000000")
            self.end_headers()
            self.wfile.write(b'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n')
            self.close_connection = True

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def validate(page: Path, config: Path) -> bool:
    """Run the command; whether it wrote its page."""
    page.unlink(missing_ok=True)
    command = [sys.executable, "-m", "dragoman", "validate", TARGET, "--config", str(config), "--report", str(page)]
    print("$ dragoman", *command[3:5], "--report", page, flush=True)
    status = subprocess.run(command, check=False).returncode
    print(f"exit status {status}: a model of 135 million parameters calls tools only when a call is forced.\n")
    return page.is_file()


def fall_over(config: Path) -> bool:
    """Ask a route whose first provider is broken; whether the second one answered."""
    logging.basicConfig(format="  %(message)s", level=logging.INFO, stream=sys.stdout)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    print('Now the route "demo": first a broken provider, then the embedded model.')
    with Client(load_config(config, environ=os.environ, home=Path.home())) as client:
        stream = client.stream("demo", "Add 2 and 3", tools=[add], tool_choice="any", params=Params(max_tokens=100))
        with stream:
            for event in stream:
                if isinstance(event, dragoman.ToolCallStart | dragoman.ToolCallEnd | dragoman.Failure):
                    print(f"  {event}")
        reply = stream.reply
    answered = reply.origin.target if reply.origin is not None else None
    print(f"\nanswered by {answered}: {', '.join(f'{call.name}({call.arguments})' for call in reply.tool_calls)}")
    return answered == TARGET and bool(reply.tool_calls)


def main() -> int:
    """Both, in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", nargs="?", type=Path, default=Path("validation.html"))
    page = parser.parse_args().page
    with tempfile.TemporaryDirectory() as folder, broken_provider() as url:
        config = Path(folder) / "dragoman.toml"
        config.write_text(
            f'[providers.broken]\nprotocol = "openai-chat"\nbase_url = "{url}"\n'
            f'[routes.demo]\ntargets = ["broken/any", "{TARGET}"]\n[validate]\nstore = "proofs.db"\n',
            encoding="utf-8",
        )
        has_page = validate(page, config)
        has_fallen = fall_over(config)
    print(f"\nopen {page.resolve()}" if has_page else "\nno page was written")
    return 0 if has_page and has_fallen else 1


if __name__ == "__main__":
    sys.exit(main())
