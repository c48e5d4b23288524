"""The page at `/` for browsers: addresses for clients, the models, and requests as they come.

One document that loads nothing from elsewhere. Its policy allows its own style and script, by their hashes, and
requests to the gateway itself. Variable text is escaped here, or set as text by the script.
https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/Content-Security-Policy (read 2026-11-22).
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman.gateway.messages import Answer, Head
from dragoman.gateway.model_names import Listed
from dragoman.protocols import PROTOCOLS
from dragoman.types import ProtocolName

#: Models on the page; what is more is counted.
_SHOWN: Final = 200


def wants_html(head: Head) -> bool:
    """Return whether a browser asks: programs do not accept `text/html`."""
    return "text/html" in head.headers.get("accept", "")


def render_start(head: Head, protocols: Iterable[ProtocolName], models: Iterable[Listed]) -> Answer:
    """Render the page for an address under which the client reached the gateway."""
    before, style, between, script, after = _document()
    # A proxy in front of the gateway ends TLS, and may say so.
    scheme = "https" if head.headers.get("x-forwarded-proto") == "https" else "http"
    address = f"{scheme}://{head.headers.get('host', '127.0.0.1:4141')}"
    page = "".join((before, style, between, script, after))
    page = page.replace("<!-- addresses -->", "".join(_address_rows(address, protocols)))
    page = page.replace("<!-- models -->", "".join(_model_rows(tuple(models))))
    policy = (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-security-policy": policy,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    return Answer(200, page.encode(), "text/html; charset=utf-8", headers)


def _address_rows(address: str, protocols: Iterable[ProtocolName]) -> Iterator[str]:
    """Yield a row for each variable; protocols that share one share the row."""
    from html import escape  # loads a table of 2,231 names, for who looks at this page

    names: dict[tuple[str, str], list[str]] = {}
    for name in protocols:
        protocol = PROTOCOLS[name]
        names.setdefault((protocol.address_variable, address + protocol.address_path), []).append(name)
    for (variable, url), spoken in names.items():
        setting, target = escape(f"export {variable}="), escape(url)  # a narrow line breaks between them
        yield (
            f"<tr><th scope=row>{escape(', '.join(spoken))}</th><td><code>{setting}<span>{target}</span></code></td>"
            f'<td><button type=button data-copy="{setting}{target}">Copy</button></td></tr>\n'
        )


def _model_rows(models: tuple[Listed, ...]) -> Iterator[str]:
    from html import escape

    for listed in models[:_SHOWN]:
        model = listed.model
        context = f"{model.context:,}" if model.context is not None else "unknown"
        tools = {True: "yes", False: "no", None: "unknown"}[model.tools]
        yield (
            f"<tr><th scope=row><code>{escape(listed.name)}</code></th><td data-name=target>{escape(model.target)}</td>"
            f'<td class=number data-name="context, tokens">{context}</td><td data-name=tools>{tools}</td></tr>\n'
        )
    if len(models) > _SHOWN:
        yield f"<tr><td colspan=4>and {len(models) - _SHOWN} more</td></tr>\n"
    if not models:
        yield "<tr><td colspan=4>None yet. Start a model server, or add a provider to the configuration.</td></tr>\n"


@functools.cache
def _document() -> tuple[str, str, str, str, str]:
    """Return the document around its style and its script, which are hashed as they stand between their tags."""
    from importlib.resources import files  # loads modules that nothing else needs

    text = files(__package__).joinpath("start.html").read_text(encoding="utf-8")
    before, _, rest = text.partition("<style>")
    style, _, rest = rest.partition("</style>")
    between, _, rest = rest.partition("<script>")
    script, _, after = rest.partition("</script>")
    return f"{before}<style>", style, f"</style>{between}<script>", script, f"</script>{after}"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
