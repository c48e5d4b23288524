"""`run`: run a command, word by word, without a shell. `shell`: run a script, offered only if the user asked for it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from dragoman.agent.safe_text import hidden_character, plain_line, plain_text, revealed_text
from dragoman.agent.sandbox.sandbox import Finished, Sandbox
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed, identity_of
from dragoman.agent.tools.toolbox import Planner, planner_of
from dragoman.agent.work_folder import WorkFolder

_WORDS: Final = 1_000
_BYTES: Final = 64 * 1024
_LONGEST: Final = 1_800  # seconds
_MODEL_LIMIT: Final = 30_000  # characters of output that the model gets
_SHELL: Final = ("/bin/sh", "-c")

Seconds = Annotated[int, msgspec.Meta(ge=1, le=_LONGEST)]


def run_tool(folder: WorkFolder, sandbox: Sandbox) -> Planner:
    """Return the tool `run` for that folder."""

    def run(argv: list[str], path: str = ".", seconds: Seconds = 120, network: bool = False) -> Plan:
        """Run a command without a shell: no pipes, no globs, no variables.

        Args:
            argv: the command, one word an item, e.g. ["python", "-m", "pytest", "-q"]
            path: folder to run it in
            seconds: how long it may take
            network: whether it needs the network
        """
        words = tuple(argv)
        if not words or not words[0]:
            raise ToolFailed('expected a command, e.g. ["ls", "-l"], got no word')
        if len(words) > _WORDS:
            raise ToolFailed(f"expected at most {_WORDS:,} words, got {len(words):,}")
        return _plan("run", words, shlex.join(words), (folder, sandbox), path=path, seconds=seconds, network=network)

    return planner_of(run)


def shell_tool(folder: WorkFolder, sandbox: Sandbox) -> Planner:
    """Return the tool `shell` for that folder."""

    def shell(script: str, path: str = ".", seconds: Seconds = 120, network: bool = False) -> Plan:
        """Run a script with /bin/sh. Prefer run when no shell is needed.

        Args:
            script: the script
            path: folder to run it in
            seconds: how long it may take
            network: whether it needs the network
        """
        if not script.strip():
            raise ToolFailed("expected a script, got nothing")
        return _plan("shell", (script,), script, (folder, sandbox), path=path, seconds=seconds, network=network)

    return planner_of(shell)


def _plan(
    tool: str,
    words: tuple[str, ...],
    shown: str,
    where: tuple[WorkFolder, Sandbox],
    *,
    path: str,
    seconds: int,
    network: bool,
) -> Plan:
    folder, sandbox = where
    argv = words if tool == "run" else (*_SHELL, *words)
    check_words(words)
    parts = folder.parts(path)
    program = sandbox.found(argv[0])
    if program is None:
        raise ToolFailed(f"there is no program {argv[0][:80]!r} on this machine")
    with folder.opened(parts):  # it must be there, and no link
        pass

    async def do() -> Outcome:
        finished = await sandbox.run(argv, seconds=seconds, parts=parts, network=network)
        return _outcome(finished, seconds=seconds, memory=sandbox.memory)

    place = f"in {shlex.quote(revealed_text('/'.join(parts) or '.'))}"
    guard = ("with network" if network else "without network") if sandbox.is_confined else "not sandboxed"
    # Without bubblewrap every command has the network: that one says it needs it changes nothing.
    must_ask = sandbox.asks_each_time or (network and sandbox.bubblewrap is not None)
    facts = f"({place}, at most {seconds} s, {guard})"
    return Plan(
        tool=tool,
        kind="run",
        subject=words,
        shown=f"{shown}\n{facts}",
        identity=identity_of(tool, {"words": words, "path": parts, "seconds": seconds, "network": network}),
        do=do,
        asks="always" if must_ask else "unless-ruled",
        facts=facts,
    )


def check_words(words: Sequence[str]) -> None:
    """Raise ToolFailed for a command with characters that hide or fake text."""
    for word in words:
        hidden = hidden_character(word)
        if hidden is not None:
            raise ToolFailed(f"expected a command of visible characters, got one with {hidden}")
    if sum(len(word.encode()) for word in words) > _BYTES:
        raise ToolFailed(f"expected a command of at most {_BYTES:,} bytes")


def _on_inert(places: Sequence[str]) -> str:
    """Return the line about renamed files that other programs would have obeyed."""
    aside = [plain_line(place) for place in places if not place.startswith("!")]
    failed = [plain_line(place[1:]) for place in places if place.startswith("!")]
    words = []
    if aside:
        words.append(f"made inert, since programs obey them outside of the sandbox: {_listed(aside)}; NAME.inert keeps"
                     " what it was, `write` asks the user for it")  # fmt: skip
    if failed:
        words.append(f"BEWARE, programs may obey these and they could not be made inert: {_listed(failed)}")
    return ". ".join(words)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more


def _outcome(finished: Finished, *, seconds: int, memory: int) -> Outcome:
    output = plain_text(finished.output)
    if len(output) > _MODEL_LIMIT:
        half = _MODEL_LIMIT // 2
        output = f"{output[:half]}\n[… {len(output) - 2 * half:,} characters left out …]\n{output[-half:]}"
    endings = {
        "timeout": f"it was ended after {seconds} s",
        "processes": "it was ended: it started too many processes",
        "memory": f"it was ended: it took more than {memory // 1024**2:,} MiB of memory (agent.limits.memory_mib)",
        "disk": "it was ended: it filled the disk",
        "stopped": "it was ended",
        "not-started": f"it did not start: {finished.message.lower()}",
        "lost": finished.message,
    }
    end = endings[finished.ending] if finished.ending is not None else f"exit status {finished.status}"
    text = f"{output.rstrip()}\n({end})" if output.strip() else f"({end})"
    if finished.inert:
        text += f"\n({_on_inert(finished.inert)})"
    return Outcome(text, is_error=finished.ending is not None or finished.status != 0, shown=text, is_foreign=True)
