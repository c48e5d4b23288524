"""Tool calls that a model wrote as text become the same events as structured ones, and their markup leaves the text.

Each family is one small file; `FAMILIES` lists them. A family with a marker is live: its call opens as soon as its
name is known to be offered. One without (`where="message"`) is held until the message shows that it is nothing else.
Calls in thinking are held until the response shows that no answer follows. Text waits only while it may still
become a marker.
"""

from __future__ import annotations

from typing import Final

from dragoman.stages.rescue import (
    anthropic_tags,
    bare_json,
    cohere,
    command_r,
    deepseek,
    deepseek_dsml,
    fenced_json,
    gemma,
    gemma_code,
    glm,
    granite,
    harmony,
    hermes,
    hunyuan,
    internlm,
    jamba,
    kimi,
    laguna,
    lfm,
    llama3,
    llama4,
    longcat,
    minimax,
    minimax_m3,
    mistral,
    olmo,
    phi4,
    python_list,
    qwen_xml,
    seed_oss,
    step3,
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
    minimax.FAMILY,
    minimax_m3.FAMILY,
    anthropic_tags.FAMILY,
    harmony.FAMILY,
    granite.FAMILY,
    phi4.FAMILY,
    cohere.FAMILY,
    command_r.FAMILY,
    gemma.FAMILY,
    internlm.FAMILY,
    jamba.FAMILY,
    hunyuan.FAMILY,
    seed_oss.FAMILY,
    step3.FAMILY,
    longcat.FAMILY,
    bare_json.FAMILY,
    fenced_json.FAMILY,
    gemma_code.FAMILY,
    python_list.FAMILY,
)

__all__ = ["FAMILIES", "Rescue"]
