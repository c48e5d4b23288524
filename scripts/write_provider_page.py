"""Writes docs/reference/providers.md from the catalogue: `python scripts/write_provider_page.py`."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.providers.catalog import Catalog, Provider, load_catalog, load_model_sources

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "providers.md"

HEAD = """\
# Providers

<!-- Made from src/dragoman/providers/catalog.toml and models.json by scripts/write_provider_page.py: change those. -->

A target is `provider/model`: `zhipu/glm-4.6`, `openrouter/deepseek/deepseek-v4-pro`. A provider of this page needs
nothing but its key in one of the variables named here. Everything can be overridden under `[providers.NAME]` in
`dragoman.toml`; a server that is not listed needs only `protocol` and `base_url`.

```toml
[providers.zhipu]
region = "international"            # another site of the same service
[providers.deepseek]
protocol = "anthropic-messages"     # another of its protocols
[providers.lab]                     # any other server
protocol = "openai-chat"
base_url = "http://10.0.0.5:8000/v1"
```

| name | protocol (also) | address | regions | key from | models listed |
|---|---|---|---|---|---|
"""

AZURE = """
`azure` is Azure OpenAI's v1 API (no `api-version`; the deployment's name goes as the model), `azure-deployments` the
dated one (`/openai/deployments/NAME/chat/completions?api-version=…`). Both need `AZURE_OPENAI_RESOURCE_NAME`, or the
whole address as `base_url`, and send the key as `api-key`.

## Models

The list knows context window, longest output, input modalities, tools and thinking. What its sources do not say is
null, never guessed, and a model that is missing can be used all the same. `dragoman models info TARGET` shows a row.
Rewrite the list with `python scripts/update_models.py --help`. Its sources:

| source | version | made | read | licence | providers |
|---|---|---|---|---|---|
"""


def row(catalog: Catalog, provider: Provider) -> str:
    also = f" ({', '.join(provider.also)})" if provider.also else ""
    address = f"`{provider.base_url}`" if provider.base_url else "chosen when it starts"
    note = f" — closed by its vendor on {provider.retired}" if provider.retired else ""
    cells = [
        f"[{provider.name}]({provider.page or provider.source.partition(' ')[0]}){note}",
        f"{provider.protocol}{also}",
        address,
        ", ".join(f"`{region}`" for region in provider.regions),
        ", ".join(f"`{name}`" for name in provider.api_key_env),
        str(len(catalog.models(provider.name)) or ""),
    ]
    return "| " + " | ".join(cells) + " |"


def page(catalog: Catalog) -> str:
    """The whole page."""
    providers = [row(catalog, provider) for provider in catalog.providers.values()]
    sources = [
        f"| {source.name} | {source.version or ''} | {source.date or ''} | {source.read} | {source.licence or ''} "
        f"| {', '.join(source.providers)} |"
        for source in load_model_sources()
    ]
    return HEAD + "\n".join(providers) + "\n" + AZURE + "\n".join(sources) + "\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(page(load_catalog()), encoding="utf-8")
    print(TARGET, file=sys.stderr)
