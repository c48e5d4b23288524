"""Rewrites src/dragoman/providers/models.json from two published packages. Reads files only, fetches nothing.

    npm pack @earendil-works/pi-ai                               # MIT; its chat catalogue lists models that take tools
    pip download --no-deps --dest DIR litellm                    # MIT; only one JSON file is read, never install it
    python scripts/update_models.py --pi-ai FILE.tgz --litellm FILE.whl --read 2026-11-21
    make test                                                    # then read the diff before you commit it

Why two: the first is the more careful one, but lacks some vendors, and knows no sound, video or documents as input.
What neither knows is null. Rows kept by hand stand in BY_HAND with their source.
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

TARGET = Path(__file__).parent.parent / "src" / "dragoman" / "providers" / "models.json"

#: Our provider → files of the first package, the first that has a model wins.
FROM_PI_AI = {
    "openai": ["openai"], "azure": ["azure"], "anthropic": ["anthropic"], "gemini": ["google"],
    "zhipu": ["zai", "zai-coding-cn"], "moonshot": ["moonshotai"], "minimax": ["minimax"], "deepseek": ["deepseek"],
    "mistral": ["mistral"], "groq": ["groq"], "together": ["together"], "fireworks": ["fireworks"],
    "openrouter": ["openrouter"], "xai": ["xai"], "cerebras": ["cerebras"], "nvidia": ["nvidia"],
    "huggingface": ["huggingface"],
}  # fmt: skip

#: Our provider → provider names of the second package. Those that the first also has only gain input modalities.
FROM_LITELLM = {
    "openai": ["openai"], "gemini": ["gemini"], "mistral": ["mistral"],
    "zhipu": ["zai", "bigmodel"], "aliyun": ["dashscope"], "volcengine": ["volcengine"], "tencent": ["tencent"],
    "cohere": ["cohere_chat"], "perplexity": ["perplexity"],
}  # fmt: skip

#: The first package writes this many tokens where its own source has no figure, so the figure says nothing.
PLACEHOLDER_TOKENS = 4096


class Row(NamedTuple):
    """One model; the order is that of the file's `fields`."""

    id: str
    context: int | None
    max_output: int | None
    input: list[str] | None
    tools: bool | None
    thinking: bool | None


#: Provider → (row, page that says so, date read).
BY_HAND = {
    "longcat": [
        (
            Row("LongCat-2.0", 1_048_576, 131_072, ["text"], True, True),
            "https://docs.openclaw.ai/providers/longcat",
            "2026-11-21",
        )
    ]
}


def known(tokens: object) -> int | None:
    """A positive number of tokens, else None."""
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def pi_ai_rows(files: dict[str, Any], names: list[str]) -> Iterator[Row]:
    for name in names:
        for models in files[name].values():
            for model in models.values():
                if model.get("type") == "chat":
                    output = known(model.get("maxTokens"))
                    yield Row(
                        model["id"],
                        None if model.get("contextWindow") == PLACEHOLDER_TOKENS else known(model.get("contextWindow")),
                        None if output == PLACEHOLDER_TOKENS else output,
                        list(model["input"]) if model.get("input") else None,
                        True,
                        model.get("reasoning"),
                    )


def litellm_rows(prices: dict[str, Any], provider: str, theirs: list[str], *, today: str) -> Iterator[Row]:
    for key, model in prices.items():
        if model.get("litellm_provider") not in theirs or model.get("mode") not in ("chat", "responses"):
            continue
        model_id = key.removeprefix(f"{model['litellm_provider']}/")
        if (model.get("deprecation_date") or "9999") <= today or not is_current(provider, model_id):
            continue
        yield Row(
            model_id,
            known(model.get("max_input_tokens")),
            known(model.get("max_output_tokens")),
            litellm_input(model),
            model.get("supports_function_calling"),
            model.get("supports_reasoning"),
        )


def is_current(provider: str, model_id: str) -> bool:
    """Perplexity's agent API names models vendor/model; its older names went with the Sonar API on 2026-09-27."""
    return provider != "perplexity" or ("/" in model_id and not model_id.startswith("preset/"))


def litellm_input(model: dict[str, Any]) -> list[str] | None:
    """Input modalities; None when the file says nothing about images, the first that anybody would note."""
    if model.get("supports_vision") is None:
        return None
    also = {"image": "supports_vision", "audio": "supports_audio_input", "video": "supports_video_input"}
    kinds = ["text", *(kind for kind, field in also.items() if model.get(field))]
    return [*kinds, "document"] if model.get("supports_pdf_input") else kinds


def merged(first: Iterator[Row], second: Iterator[Row], *, add: bool) -> list[Row]:
    """Rows by id. Of equal ids the first row stands and gains the input kinds of the later ones."""
    rows: dict[str, Row] = {}
    for row in first:
        rows.setdefault(row.id, row)
    for row in second:
        held = rows.get(row.id)
        if held is None:
            if add:
                rows[row.id] = row
        elif held.input is not None and row.input is not None:
            rows[row.id] = held._replace(input=held.input + [kind for kind in row.input if kind not in held.input])
    return sorted(rows.values())


def read_pi_ai(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The package's data files by name, and how to name the source."""
    with tarfile.open(path) as archive:

        def load(name: str) -> Any:
            member = archive.extractfile(f"package/{name}")
            assert member is not None, f"{path}: {name} is not a file"
            return json.load(member)

        package = load("package.json")
        made = load("dist/providers/data/.manifest.json")["generatedAt"][:10]
        wanted = sorted({name for names in FROM_PI_AI.values() for name in names})
        files = {name: load(f"dist/providers/data/{name}.json") for name in wanted}
    source = {"name": package["name"], "version": package["version"], "date": made, "licence": package["license"]}
    return files, source


def read_litellm(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The price list inside the wheel, and how to name the source. The wheel tells no date."""
    inside = "litellm/model_prices_and_context_window_backup.json"
    with zipfile.ZipFile(path) as archive:
        prices = json.loads(archive.read(inside))
    return prices, {"name": "litellm", "version": path.name.split("-")[1], "date": None, "licence": "MIT"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pi-ai", type=Path, required=True, help="the packed npm package")
    parser.add_argument("--litellm", type=Path, required=True, help="the wheel")
    parser.add_argument("--read", type=date.fromisoformat, required=True, help="the day on which they were fetched")
    parser.add_argument("--out", type=Path, default=TARGET)
    arguments = parser.parse_args()
    read = arguments.read.isoformat()
    files, pi_ai = read_pi_ai(arguments.pi_ai)
    prices, litellm = read_litellm(arguments.litellm)
    models: dict[str, list[Row]] = {}
    for provider in sorted({*FROM_PI_AI, *FROM_LITELLM}):
        models[provider] = merged(
            pi_ai_rows(files, FROM_PI_AI.get(provider, [])),
            litellm_rows(prices, provider, FROM_LITELLM.get(provider, []), today=read),
            add=provider not in FROM_PI_AI or provider == "zhipu",
        )
    sources = [
        {**pi_ai, "read": read, "providers": sorted(FROM_PI_AI)},
        {**litellm, "read": read, "providers": sorted(FROM_LITELLM)},
    ]
    for provider, rows in BY_HAND.items():
        models[provider] = [row for row, _, _ in rows]
        sources += [
            {"name": page, "version": None, "date": None, "licence": None, "read": day, "providers": [provider]}
            for _, page, day in rows
        ]
    write(arguments.out, sources, models)
    print(f"{arguments.out}: {sum(map(len, models.values()))} models of {len(models)} providers", file=sys.stderr)


def write(path: Path, sources: list[dict[str, Any]], models: dict[str, list[Row]]) -> None:
    """One row a line, so that a diff shows what changed."""

    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    blocks = [
        f"{text(provider)}:[\n" + ",\n".join(text(list(row)) for row in rows) + "\n]"
        for provider, rows in sorted(models.items())
    ]
    head = f'{{"fields":{text(Row._fields)},\n"sources":[\n' + ",\n".join(map(text, sources)) + "\n],\n"
    path.write_text(head + '"models":{\n' + ",\n".join(blocks) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
