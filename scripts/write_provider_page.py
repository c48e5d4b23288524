"""Writes docs/reference/providers.md from the catalogue: `python scripts/write_provider_page.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from dragoman.providers.catalog import Catalog, Provider, load_catalog, load_model_sources

REPOSITORY = Path(__file__).parent.parent
TARGET = REPOSITORY / "docs" / "reference" / "providers.md"
SOURCE = REPOSITORY / "src" / "dragoman"

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

BEHIND = """
`azure` is Azure OpenAI's v1 API. It needs no `api-version`, and the model is the deployment's name.
`azure-deployments` is the dated API (`/openai/deployments/NAME/chat/completions?api-version=…`). Both need
`AZURE_OPENAI_RESOURCE_NAME`, or the whole address as `base_url`. Both send the key as `api-key`.

## Settings of a provider

You can set each of these in `[providers.NAME]`. Beside them stand `region`, which picks one of `regions`, and your own
`api_key`, `clean`, `strict` and `client_login`, as in [Configuration](configuration.md).

| setting | what it is |
|---|---|
{settings}

## Dialect

A `dialect` says how a server differs within its protocol. The defaults are the protocol's own specification. Set what
differs in `[providers.NAME]`, or for one model in `[models."provider/model"]`: `dialect = {{ strict_turns = true }}`.
What a server does not take is left out of the request, and a deviation `dropped` names it.

| field | default, others | what it is |
|---|---|---|
{dialect}

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


def settings() -> str:
    """The rows of what a provider's table may hold, from the words at the top of the catalogue."""
    head = (SOURCE / "providers" / "catalog.toml").read_text(encoding="utf-8").partition("\n\n")[0]
    rows = re.findall(r"^# ([a-z_]+(?:, [a-z_]+)*) +(.+)$", head, re.MULTILINE)
    return "\n".join(
        f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {cell(words)} |" for names, words in rows
    )


def dialect() -> str:
    """The rows of a dialect's fields, from the words beside or above each."""
    text = (SOURCE / "protocol" / "dialect.py").read_text(encoding="utf-8").partition("class Dialect(")[2]
    fields = re.findall(
        r"^(?:    #: (.+)\n)?    ([a-z_]+): (.+?) = (.+?)(?:  # (.+))?$", text.partition("PLAIN = ")[0], re.MULTILINE
    )
    return "\n".join(
        f"| `{name}` | {written(default, kind)} | {cell(above or beside)} |"
        for above, name, kind, default, beside in fields
    )


def written(default: str, kind: str) -> str:
    """A default as the configuration would have it; of words, all that there are, the default first."""
    words = re.findall(r'"([^"]+)"', kind) if kind.startswith("Literal") else []
    shown = {"True": "`true`", "False": "`false`", "None": "not set", "()": "none"}.get(default, f"`{default}`")
    return ", ".join([shown, *(f'`"{word}"`' for word in words if f'"{word}"' != default)])


def cell(words: str) -> str:
    """Words within a table."""
    return words.replace("|", "\\|")


def page(catalog: Catalog) -> str:
    """The whole page."""
    providers = [row(catalog, provider) for provider in catalog.providers.values()]
    sources = [
        f"| {source.name} | {source.version or ''} | {source.date or ''} | {source.read} | {source.licence or ''} "
        f"| {', '.join(source.providers)} |"
        for source in load_model_sources()
    ]
    behind = BEHIND.format(settings=settings(), dialect=dialect())
    return HEAD + "\n".join(providers) + "\n" + behind + "\n".join(sources) + "\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(page(load_catalog()), encoding="utf-8")
    print(TARGET, file=sys.stderr)
