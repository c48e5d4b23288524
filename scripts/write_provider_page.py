"""Writes docs/reference/providers.md from the catalogue: `python scripts/write_provider_page.py`."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.providers.catalog import Catalog, Provider, load_catalog, load_model_sources

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "providers.md"

HEAD = """\
# Providers

<!-- Made from src/dragoman/providers/catalog.toml and models.json by scripts/write_provider_page.py: change those. -->

A target is `provider/model`, for example `zhipu/glm-4.6` or `openrouter/deepseek/deepseek-v4-pro`. To use a provider of
this page, set its key in one of the variables of its row. You can override everything under `[providers.NAME]` in
`dragoman.toml`. A server that is not listed needs only `protocol` and `base_url`.

```toml
[providers.zhipu]
region = "international"            # another site of the same service
[providers.deepseek]
protocol = "anthropic-messages"     # another of its protocols
[providers.lab]                     # any other server
protocol = "openai-chat"
base_url = "http://10.0.0.5:8000/v1"
```

| name | protocol (others) | address | regions | key variable | models listed |
|---|---|---|---|---|---|
"""

AZURE = """
`azure` is Azure OpenAI's v1 API. It needs no `api-version`, and the model is the deployment's name.
`azure-deployments` is the dated API (`/openai/deployments/NAME/chat/completions?api-version=…`). Both need
`AZURE_OPENAI_RESOURCE_NAME`, or the whole address as `base_url`. Both send the key as `api-key`.

## Models

The list of models has each model's context window, longest output, input modalities, tools and thinking. What the
sources do not say is null; dragoman never guesses it. You can use a model that is not in the list.
`dragoman models info TARGET` shows one model. To write the list again, see
`python scripts/update_models.py --help`. Its sources are:

| source | version | published | read | licence | providers |
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
