"""Nemotron Nano 2: a list of call objects, `<TOOLCALL>[{"name": …, "arguments": {…}}, …]</TOOLCALL>`."""

from __future__ import annotations

from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Cursor, Family, Parser
from dragoman.stages.rescue.json_calls import call_objects


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    yield from call_objects(cursor, tools, "</TOOLCALL>")
    yield from cursor.closing("<SPECIAL_12>")


FAMILY = Family(
    name="nemotron",
    openers=("<TOOLCALL>",),
    parse=_parse,
    source="https://github.com/ggml-org/llama.cpp (models/templates/NVIDIA-Nemotron-Nano-v2.jinja, read 2026-11-22)",
    residue=("</TOOLCALL>", "</s>", "<SPECIAL_12>"),
)
