"""Known clients as data (`apps.toml`): where each looks for a server, and what points it at the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, final

import msgspec

from dragoman.config import Config
from dragoman.errors import UsageError
from dragoman.providers.catalog import nearest, split_target

#: What stands for the key of a gateway without client keys: most clients insist on one.
NO_KEY: Final = "none-needed"
#: What stands for a key that only its owner knows.
A_KEY: Final = "YOUR-CLIENT-KEY"
NO_MODEL: Final = "MODEL"
T = TypeVar("T")


@final
class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One client. The fields are those of `apps.toml`, where they are explained."""

    title: str
    speaks: tuple[str, ...]
    port: int | None = None
    shell: tuple[str, ...] = ()
    file: str = ""
    text: str = ""
    steps: tuple[str, ...] = ()
    note: str = ""


def load_presets() -> dict[str, Preset]:
    """Return all of them by name."""
    return load_tables("apps.toml", Preset)


def load_tables(file: str, kind: type[T]) -> dict[str, T]:
    """Return the tables of a file of this package by name."""
    import tomllib
    from importlib.resources import files

    text = files("dragoman.cli").joinpath(file).read_text(encoding="utf-8")
    return {name: msgspec.convert(table, kind) for name, table in tomllib.loads(text).items()}


def find_preset(name: str) -> Preset:
    """Return the preset of that name. Raises `UsageError`: there is none; names the nearest."""
    presets = load_presets()
    if name not in presets:
        raise UsageError(f"expected a client that `dragoman apps` lists, got {name[:40]!r}{nearest(name, presets)}")
    return presets[name]


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its placeholders replaced; other braces stay."""
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def values_for(config: Config, *, url: str, model: str | None = None) -> dict[str, str]:
    """Return the values of the placeholders. Without `model` the first one that the configuration offers is used."""
    return {"url": url, "v1": f"{url}/v1", "model": model or _first_model(config) or NO_MODEL, "key": shown_key(config)}


def shown_key(config: Config) -> str:
    """Return the placeholder for a client's key if the configuration or the ledger has keys."""
    from dragoman.cli.ledger_input import folder_of
    from dragoman.ledger.key_ring import KeyRing

    if config.server.keys or config.virtual_keys:
        return A_KEY
    if config.server.state is None:
        return NO_KEY
    ring = KeyRing(folder_of(config))
    try:
        return A_KEY if ring.has_any else NO_KEY
    finally:
        ring.close()


def render_preset(preset: Preset, values: Mapping[str, str]) -> str:
    """Render what to do: files, then shell, then steps. Comments are marked as a shell has them."""
    lines: list[str] = []
    if preset.file:
        lines += [f"# into {preset.file}:", fill(preset.text.strip("\n"), values)]
    if preset.shell:
        lines += [*(["# then:"] if preset.file else []), *(fill(line, values) for line in preset.shell)]
    lines += [f"# {fill(step, values)}" for step in preset.steps]
    if preset.note:
        lines.append(f"# {fill(preset.note, values)}")
    if values["model"] == NO_MODEL and any("{model}" in text for text in (preset.text, *preset.shell)):
        lines.append(f"# {NO_MODEL} stands for a model: `dragoman models` lists them")
    return "\n".join(lines) + "\n"


def _first_model(config: Config) -> str | None:
    for name, route in config.routes.items():
        return split_target(route.targets[0])[1] if name == "*" else name
    return next((name for name in config.models if "*" not in name), None)
