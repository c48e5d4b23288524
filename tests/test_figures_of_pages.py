"""A figure that a page tells in its text is the one that the code has."""

from pathlib import Path

from dragoman.agent.limits import REPEATS
from dragoman.agent.sandbox import guarded_paths, sandbox, standing_files
from dragoman.agent.ui import prompt
from dragoman.codec.parts.open_calls import MOST_WAITING
from dragoman.codec.patterns import STRETCH
from dragoman.config import LedgerConfig, ServerConfig, ValidateConfig
from dragoman.config.agent import AgentLimits
from dragoman.gateway import attempt_bounds
from dragoman.gateway.process.watchdog import STANDING_SECONDS
from dragoman.gateway.relay import KEEPALIVE_SECONDS
from dragoman.gateway.storage import postgresql
from dragoman.ledger.counters import roster
from dragoman.ledger.limits.leases import GONE_SECONDS, LEASE_SECONDS
from dragoman.routing.circuit_breaker import IN_A_ROW, OPEN_SECONDS
from dragoman.routing.retry import LONGEST_WAIT, RETRY_FLOOR, RETRY_SHARE, WINDOW
from dragoman.validate.results import Settings
from for_each import for_each

DOCS = Path(__file__).resolve().parent.parent / "docs"
WORDS = dict(enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]))
GIB, HOUR, DAY = 1024**3, 3_600, 86_400


def word(number: float) -> str:
    assert number == int(number)
    return WORDS[int(number)]


def whole(number: float) -> str:
    assert number == int(number)
    return f"{int(number):,}"


#: The page, and what it says with the code's figure in it.
FIGURES = {
    "explanation/agent-safety.md": [
        f"no other follows within {prompt._MORE_SECONDS} seconds",
        f"at most {sandbox._PROCESSES} processes, files of at most {whole(sandbox._FILE_BYTES / GIB)} GiB",
        f"and {whole(sandbox.OUTPUT_LIMIT / 1024)} KiB of its output are kept",
        f"the same call or error comes {word(REPEATS)} times",
    ],
    "explanation/architecture.md": [f"the first keep-alive after {whole(KEEPALIVE_SECONDS)}\nsilent seconds"],
    "explanation/faq.md": [f"`ollama_version` ({ServerConfig().ollama_version})"],
    "explanation/reliability.md": [
        f"stands still for {word(STANDING_SECONDS)} seconds",
        f"Long argument text is searched in\nstretches of {whole(STRETCH / 1024)} KiB",
    ],
    "explanation/threat-model.md": [
        (
            f"{whole(AgentLimits().memory_mib / 1024)} GiB of memory (`agent.limits.memory_mib`), {sandbox._PROCESSES} "
            f"processes, {whole(sandbox._THREADS)} threads, {whole(sandbox._DISK_BYTES / GIB)} GiB of disk, "
            f"{whole(sandbox._NEW_FILES)} new files, {whole(sandbox._FILE_BYTES / GIB)} GiB a file"
        ),
        f"If there are more than {guarded_paths._WRITABLE}\n  repositories, only the first {guarded_paths._WRITABLE}",
        f"A path longer than {whole(standing_files._PATH_LIMIT)} bytes",
    ],
    "explanation/tolerance.md": [f"At most {MOST_WAITING} calls of an answer wait"],
    "explanation/validation.md": [
        f"It expires after {ValidateConfig().expires_days} days",
        f"filled to {whole(Settings().max_context)} tokens",
    ],
    "how-to/routes-and-fallback.md": [
        f"If the wait is longer than {whole(LONGEST_WAIT)} seconds",
        f"within {word(WINDOW)} seconds ({word(RETRY_FLOOR)} are always allowed)",
        f"After {word(IN_A_ROW)} failures in a row, a target is skipped for {word(OPEN_SECONDS)} seconds",
    ],
    "how-to/run-the-gateway.md": [f"`drain_seconds` ({whole(ServerConfig().drain_seconds)} by default)"],
    "tutorial/set-a-budget.md": [
        f"{whole(attempt_bounds._ADDED)} tokens that the\nprovider may add",
        f"{whole(attempt_bounds._MEDIUM)} tokens for each of its names",
    ],
    "how-to/share-a-ledger.md": [
        f"for {whole(LedgerConfig().replica_max_age_seconds / HOUR)} hours (`ledger.replica_max_age_seconds`)",
        f"No request waits longer than {word(postgresql.PATIENCE)}\nseconds for the database",
        f"its advance is free again after {word(roster._LOST_AFTER / LEASE_SECONDS)} minutes",
        f"they skip the failing one for {word(OPEN_SECONDS)} seconds",
    ],
}


@for_each(("page", "said"), [(page, said) for page, sentences in FIGURES.items() for said in sentences])
def test_the_figure_is_the_codes(page: str, said: str) -> None:
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert " ".join(said.split()) in text


def test_words_for_figures() -> None:
    """ "less than a fifth", "for a minute", "for a day"."""
    assert (RETRY_SHARE < 0.2, LEASE_SECONDS, GONE_SECONDS) == (True, 60, DAY)
