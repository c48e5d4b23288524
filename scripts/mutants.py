"""Plant drifts in the quick ways to read, one at a time, and see whether the property tests notice each.

A drift is what somebody forgets: a field that one way looks at and its twin does not. Each is planted in a copy of the
package, and `tests/test_equal_ways.py` and `tests/test_plain_requests.py` run against it, with every change of every
value, as `make soak` tries them (`make test` takes one of five). Exits 1 when one survives that `HARMLESS` does not
name. `--list` names them, `--only TEXT` picks some, `--jobs` says how many are tried at a time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from dragoman.protocols.anthropic import wire as anthropic
from dragoman.protocols.openai_chat import wire as chat

PROJECT = Path(__file__).resolve().parent.parent
SOURCE = PROJECT / "src"
FOLDER = "dragoman/protocols"
#: Drifts that change nothing, each with its reason.
HARMLESS: dict[str, str] = {}


class Mutant(NamedTuple):
    """`old` becomes `new`, once, in a file of the package; `protocol` is the one whose tests are run."""

    protocol: str
    path: str
    old: str
    new: str
    name: str


def mutants() -> Iterator[Mutant]:
    """All of them."""
    yield from fields_that_a_batch_ignores()
    yield from lines_that_are_gone()
    yield from conditions_that_are_gone()
    yield from by_hand()


def fields_that_a_batch_ignores() -> Iterator[Mutant]:
    """A quick way that lets a field say anything."""
    path, name = f"{FOLDER}/openai_chat/response/delta_batch.py", "openai-chat"
    places = {
        chat.Delta: '"role": ...,',
        chat.Choice: '"delta": delta,',
        chat.Chunk: "narrowed(Chunk, {",
        chat.CallPiece: '"function": _Function,',
    }
    for wire, place in places.items():
        for field in msgspec.structs.fields(wire):
            if field.name not in ("content", "tool_calls", "role", "channel", "token_id", "index", "delta", "choices",
                                  "function", "type", "rest", "content_parts", "content_filter_results"):  # fmt: skip
                yield Mutant(
                    name, path, place, f'{place} "{field.name}": ...,', f"batch ignores {wire.__name__}.{field.name}"
                )
    path, name = f"{FOLDER}/anthropic/response/delta_batch.py", "anthropic-messages"
    for wire, place in ((anthropic.Delta, '{"type": Literal[kind],'), (anthropic.StreamEvent, '"index": int,')):
        for field in msgspec.structs.fields(wire):
            if field.name in ("error", "stop_reason", "signature"):
                yield Mutant(
                    name, path, place, f'{place} "{field.name}": ...,', f"batch ignores {wire.__name__}.{field.name}"
                )


def lines_that_are_gone() -> Iterator[Mutant]:
    """A field of a quick or of a lenient reader that somebody forgot: its line is gone."""
    files = {
        "openai-chat": ("openai_chat/response/lenient.py", r"^        (\w+)=_\w+\(value\.get\(.*\),$"),
        "ollama-chat": ("ollama/wire.py", r"^        (\w+)=_\w+\(value.*\),$"),
        "anthropic-messages": ("anthropic/passthrough.py", r"^    (error|delta|output_tokens_details): None = None$"),
        "gemini-generate": ("gemini/passthrough.py", r"^    (\w+): None = None$"),
        "openai-responses": ("openai_responses/passthrough.py", r"^    (type|error|incomplete_details): None = None$"),
    }
    for protocol, (file, pattern) in files.items():
        for found in re.finditer(pattern, (SOURCE / FOLDER / file).read_text(encoding="utf-8"), re.M):
            yield Mutant(protocol, f"{FOLDER}/{file}", found[0] + "\n", "", f"{file} forgets {found[1]}")
    file = "ollama/passthrough.py"
    for found in re.finditer(r"^    (\w+): None = None$", (SOURCE / FOLDER / file).read_text(encoding="utf-8"), re.M):
        yield Mutant("ollama-chat", f"{FOLDER}/{file}", found[0] + "\n", "", f"{file} forgets {found[1]}")


def conditions_that_are_gone() -> Iterator[Mutant]:
    """A short cut that no longer looks at something."""
    file = f"{FOLDER}/ollama/response/decode.py"
    text = (SOURCE / file).read_text(encoding="utf-8")
    for found in re.finditer(r"^ {24}and ((?:answer|line)\.\w+ is (?:None|NOTHING|False))$", text, re.M):
        yield Mutant("ollama-chat", file, found[0] + "\n", "", f"short cut without {found[1]}")
    short_cuts = [
        ("anthropic-messages", "anthropic/response/decode.py", " and not event.error", ""),
        ("anthropic-messages", "anthropic/response/decode.py", 'delta.text if block.takes == "text_delta" else delta.thinking',  # noqa: E501
         "delta.text or delta.thinking"),
        ("openai-chat", "openai_chat/response/calls.py", " or piece.extra_content or piece.rest", " or piece.rest"),
        ("openai-chat", "openai_chat/response/calls.py", "(piece.id or function.name", "(function.name"),
        ("openai-chat", "openai_chat/response/calls.py", "piece.id or function.name or piece.name", "piece.id or piece.name"),  # noqa: E501
        ("openai-chat", "openai_chat/response/delta_batch.py", "if each.index == choice and each.delta.content]", "if each.delta.content]"),  # noqa: E501
        ("openai-chat", "openai_chat/response/delta_batch.py", "if call.index == index and", "if"),
        ("openai-chat", "openai_chat/response/delta_batch.py", ' or b"rror" in chunk', ""),
        ("openai-responses", "openai_responses/response/delta_batch.py", "each.output_index == item and each.content_index == place",  # noqa: E501
         "each.output_index == item"),
        ("anthropic-messages", "anthropic/response/delta_batch.py", "if at == index and text]", "if text]"),
    ]  # fmt: skip
    for protocol, file, old, new in short_cuts:
        yield Mutant(protocol, f"{FOLDER}/{file}", old, new, f"{file}: {old.strip()[:50]} is gone")


def by_hand() -> Iterator[Mutant]:
    """What was planted once, and was noticed by nobody then."""
    place = '"annotations": ...,'
    for field in ("function_call", "refusal", "audio", "images", "thinking", "reasoning_text"):
        yield Mutant(
            "openai-chat",
            f"{FOLDER}/openai_chat/passthrough.py",
            place,
            f'{place} "{field}": ...,',
            f"answer with {field} passes",
        )
    yield Mutant(
        "ollama-chat",
        f"{FOLDER}/ollama/request/parse.py",
        "tool_call_id: ",
        "tool_call_number: ",
        "request loses tool_call_id",
    )
    yield Mutant("gemini-generate", f"{FOLDER}/gemini/request/parse.py", ' and bytes(self.functionResponse.response) == b"null"',  # noqa: E501
                 " and False", "request reads a null response")  # fmt: skip
    yield Mutant("anthropic-messages", f"{FOLDER}/anthropic/request/parse_messages.py",
                 'class _PlainResultText(msgspec.Struct, forbid_unknown_fields=True, gc=False):\n    type: Literal["text"]\n',  # noqa: E501
                 "class _PlainResultText(msgspec.Struct, gc=False):\n", "request reads a text without its type")  # fmt: skip  # noqa: E501


def planted(mutant: Mutant) -> str:
    """The text of its file with it.

    Raises:
        ValueError: its place is not in the file: the code has changed, and the mutant must too.
    """
    text = (SOURCE / mutant.path).read_text(encoding="utf-8")
    if mutant.old not in text:
        raise ValueError(f"{mutant.name}: no {mutant.old!r} in {mutant.path}")
    return text.replace(mutant.old, mutant.new, 1)


def is_noticed(mutant: Mutant) -> bool:
    """Whether a test fails when it is planted."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE / "dragoman", Path(folder) / "dragoman")  # with what is compiled already
        (Path(folder) / mutant.path).write_text(planted(mutant), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-k", mutant.protocol]
        command += ["-m", "soak or not soak", "tests/test_equal_ways.py", "tests/test_plain_requests.py"]
        run = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, check=False)
    if run.returncode not in (0, 1):
        raise ValueError(f"{mutant.name}: no test failed or passed: {run.stdout.decode(errors='replace')[-500:]}")
    return run.returncode == 1


def main() -> int:
    """Plant and test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    chosen = [mutant for mutant in mutants() if options.only in f"{mutant.protocol} {mutant.name}"]
    for mutant in chosen:
        planted(mutant)  # each has its place, before the first is tried
        if options.list:
            print(mutant.protocol, mutant.name)
    if options.list:
        return 0
    survivors, begun = 0, time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, noticed in zip(chosen, pool.map(is_noticed, chosen), strict=True):
            if not noticed:
                why = HARMLESS.get(f"{mutant.protocol} {mutant.name}")
                survivors += why is None
                print(f"survives: {mutant.protocol} {mutant.name}" + (f" (harmless: {why})" if why else ""), flush=True)
    print(f"{len(chosen)} planted, {survivors} survive, {time.monotonic() - begun:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
