"""Tool calls that a model wrote as text become the same events as structured ones, and their markup leaves the text.

Each family is one small file; `FAMILIES` lists them. A family with a marker is live: its call opens as soon as its
name is known to be offered. One without (`where="message"`) is held until the message shows that it is nothing else.
Calls in thinking are held until the response shows that no answer follows. Text waits only while it may still
become a marker.
"""

from __future__ import annotations

from typing import Final

from dragoman.stages.rescue import (
    bare_json,
    deepseek,
    deepseek_dsml,
    glm,
    hermes,
    kimi,
    laguna,
    lfm,
    llama3,
    llama4,
    mistral,
    olmo,
    python_list,
    qwen_xml,
)
from dragoman.stages.rescue.cursor import Family
from dragoman.stages.rescue.stage import Rescue

FAMILIES: Final[tuple[Family, ...]] = (
    hermes.FAMILY,
    qwen_xml.FAMILY,
    glm.FAMILY,
    laguna.FAMILY,
    mistral.FAMILY,
    llama3.FAMILY,
    llama4.FAMILY,
    lfm.FAMILY,
    olmo.FAMILY,
    deepseek.FAMILY,
    deepseek_dsml.FAMILY,
    kimi.FAMILY,
    bare_json.FAMILY,
    python_list.FAMILY,
)

__all__ = ["FAMILIES", "Rescue"]
