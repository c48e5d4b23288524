"""`make page-screens`: the page of a running gateway in a real browser, wide and narrow, light and dark.

It needs Chromium (`apt install chromium`), started without a window and asked over its DevTools protocol
(https://chromedevtools.github.io/devtools-protocol/, read 2026-11-22). For each size and theme it checks that the page
breaks nothing of its policy, fits the window, shows requests as they end, and looks as the layout that is kept in
`tests/pages` (DRAGOMAN_WRITE_SCREENS=1 writes it). Pictures go to the folder that is named.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from page_layouts import keep_layout, layout_of, settle

from dragoman.config import load_config
from dragoman.gateway.process.gateway import Gateway
from dragoman.testing import FakeModel, call, deviation

WIDTHS = (1280, 400)
THEMES = ("light", "dark")
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
#: How long a request took is a cell of its own; whether a page may copy is the browser's word.
CHANGING = ((r"^\d+$", "N"), ("^Selected$", "Copied"))
ASK = {"model": "coder", "messages": [{"role": "user", "content": "Weather in Paris?"}], "tools": [TOOL]}


class Browser:
    """One tab of a browser, what it complained of, and what it asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._count = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.complaints: list[str] = []
        self.requested: list[str] = []  # addresses

    async def listen(self) -> None:
        """Take what comes, until the browser goes."""
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                self._waiting.pop(said["id"]).set_result(said.get("result", said))
            elif said["method"] == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
                self.complaints.append(said["params"]["entry"]["text"])
            elif said["method"] == "Network.requestWillBeSent":
                self.requested.append(said["params"]["request"]["url"])
            elif said["method"] == "Runtime.exceptionThrown":
                self.complaints.append(said["params"]["exceptionDetails"]["text"])

    async def ask(self, method: str, **params: Any) -> Any:
        """One command, and its result."""
        self._count += 1
        answer = self._waiting[self._count] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._count, "method": method, "params": params})
        return await asyncio.wait_for(answer, 20)

    async def value(self, expression: str) -> Any:
        """What an expression comes to in the page."""
        found = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until it is true, ten seconds at most."""
        for _ in range(100):
            if await self.value(expression):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"expected {expression} within ten seconds")

    async def resize(self, width: int, theme: str) -> None:
        """Give the window this width, in CSS pixels, and the theme "light" or "dark"."""
        await self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        await self.ask("Emulation.setEmulatedMedia", features=features)

    async def expect_no_sideways_scrolling(self) -> None:
        """The page is no wider than the window."""
        wide, room = await self.value("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= room, f"the page is {wide} wide, in a window of {room}"

    async def picture(self, file: Path) -> None:
        """Write the whole page as a PNG file."""
        found = await self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(found["data"]))


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A tab of a browser that ends with the block."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        sys.exit("expected Chromium on the PATH (apt install chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
        process = subprocess.Popen(
            [program, *options, f"--user-data-dir={profile}", "about:blank"], stderr=subprocess.DEVNULL
        )
        try:
            told = Path(profile, "DevToolsActivePort")
            for _ in range(200):
                if told.exists() and told.read_text().count("\n"):
                    break
                await asyncio.sleep(0.1)
            port = told.read_text().splitlines()[0]
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                    [tab] = [found for found in await answer.json() if found["type"] == "page"]
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    found = Browser(socket)
                    listening = asyncio.create_task(found.listen())
                    for domain in ("Page", "Runtime", "Log", "Network"):
                        await found.ask(f"{domain}.enable")
                    yield found
                    listening.cancel()
        finally:
            process.terminate()
            process.wait(10)


async def check(tab: Browser, url: str, width: int, theme: str, into: Path) -> list[list[Any]]:
    """The page at one size in one theme, with two requests that end while it is open; its layout."""
    await tab.resize(width, theme)
    await tab.ask("Page.navigate", url=url)
    await tab.until("document.readyState === 'complete' && document.querySelectorAll('button').length === 4")
    await asyncio.sleep(0.5)  # its own request for the lines is under way
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.post(f"{url}v1/chat/completions", json=ASK) as answer:
                assert answer.status == 200, await answer.text()
    await tab.until("document.getElementById('rows').rows.length === 2")
    assert "missing-id" in await tab.value("document.getElementById('rows').textContent")
    await tab.expect_no_sideways_scrolling()
    over = "[...document.querySelectorAll('.table')].map((box) => box.scrollWidth - box.clientWidth)"
    assert await tab.value(over) == [0, 0, 0], "a table is wider than its frame"
    await tab.value("document.querySelector('button').click()")
    await tab.until("['Copied', 'Selected'].includes(document.querySelector('button').textContent)")
    assert tab.complaints == [], tab.complaints
    await settle(tab, CHANGING)
    await tab.picture(into / f"start-{width}-{theme}.png")
    return await layout_of(tab)


async def main() -> None:
    """Check every size and theme."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--into", type=Path, default=Path("build/pages"), help="the folder of the pictures")
    into: Path = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    turns = [[deviation("missing-id"), call("get_weather", city="Paris")]] * (2 * len(WIDTHS) * len(THEMES))
    with tempfile.TemporaryDirectory() as folder, FakeModel(*turns).serve() as served:
        file = Path(folder, "dragoman.toml")
        file.write_text(
            f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{served.url}/v1"\n'
            '[routes.coder]\ntargets = ["lab/qwen3-coder"]\n'
        )
        gateway = await Gateway.open(load_config(file, environ={}, home=Path(folder)), host="127.0.0.1", port=0)
        try:
            async with browser() as tab:
                for width in WIDTHS:
                    url = f"{gateway.url}/"
                    keep_layout(
                        f"start-{width}", {theme: await check(tab, url, width, theme, into) for theme in THEMES}
                    )
                    print(f"ok: {width} pixels, {' and '.join(THEMES)}")
        finally:
            await gateway.close()


if __name__ == "__main__":
    asyncio.run(main())
