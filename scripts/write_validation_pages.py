"""The pages of docs/reference that tell of validation: every probe, and what real runs have shown."""

from datetime import UTC, datetime
from pathlib import Path

from dragoman.proofs import Proof, is_clean, is_proven, parse_export, wire_deviations
from dragoman.validate.probe import SUITE_VERSION, Expect, Probe, label_of, load_probes

EXPORTS = Path(__file__).resolve().parent.parent / "docs" / "tested"


def probes_page(note: str) -> str:
    """Every probe, in the order of the full suite."""
    lines = [
        "# Probes",
        "",
        note,
        "",
        f"What `dragoman validate` asks, in the order of the full suite (suite version {SUITE_VERSION}). Words, names,",
        "numbers and the order of tools come from the seed of the run. A probe is skipped when one that it needs did",
        "not pass. The quick suite asks those marked *always*, and those marked *after a failure* when `tool-call`",
        "did not pass; then it also tries the other [ways of asking for tools](../how-to/models-without-tools.md).",
        "In JSON and JUnit `tool-call` has its file's name, `toolCall`.",
        "Each is a file in `src/dragoman/validate/probes`; another file there is another probe.",
        "",
        "| probe | a model that passes | quick | needs | may do without |",
        "|---|---|---|---|---|",
    ]
    for probe in load_probes():
        needs = ", ".join(f"`{label_of(name)}`" for name in probe.needs)
        if probe.needs_context:
            needs += ", a known context window"
        quick = {"always": "always", "after-failure": "after a failure", None: ""}[probe.quick]
        may = "; ".join(probe.may.values())
        label = label_of(probe.name)
        lines.append(f"| [`{label}`](#{label}) | {probe.title} | {quick} | {needs} | {may} |")
    lines += [""]
    for probe in load_probes():
        lines += _probe(probe)
    return "\n".join(lines)


def _probe(probe: Probe) -> list[str]:
    lines = [f"## {label_of(probe.name)}", "", f"A model that passes {probe.title}.", ""]
    said = {
        "tool choice": "" if probe.choice.mode == "auto" else f"{probe.choice.mode} {probe.choice.name}".strip(),
        "most tokens": str(probe.params.max_tokens),
        "thinking": probe.params.reasoning or "",
        "stop": ", ".join(map(str, probe.params.stop)),
        "parallel calls": "" if probe.params.parallel_tools is None else str(probe.params.parallel_tools).lower(),
        "tools offered": ", ".join(f"`{tool.name}`" for tool in probe.tools),
        "asked of another model": probe.target.model or "",
        "with another key": probe.target.key or "",
    }
    lines.append("; ".join(f"{what}: {value}" for what, value in said.items() if value) + ".")
    for case in probe.cases:
        lines += ["", f"- {case.question}"]
    for number, turn in enumerate(probe.turns, 1):
        what = [f"“{' '.join(turn.user.split())}”"] if turn.user else []
        what += [f"`{name}` gives `{text}`" for name, text in turn.results.items()]
        what += [f"`{name}` fails: `{text}`" for name, text in turn.errors.items()]
        if turn.abort_after is not None:
            what.append(f"left after {turn.abort_after} pieces")
        lines += ["", f"{number}. {'; '.join(what)}", f"   Expected: {_expected(turn.expect)}."]
    return [*lines, ""]


def _expected(expect: Expect) -> str:
    said = []
    for call in expect.calls:
        said.append(f"a call of `{call.name}` with exactly `{call.arguments}`")
    for name in Expect.__struct_fields__:
        value = getattr(expect, name)
        if name != "calls" and value != getattr(Expect(), name):
            shown = ", ".join(map(str, value)) if isinstance(value, tuple) else value
            said.append(name.replace("_", " ") + ("" if value is True else f" `{shown}`"))
    return ", ".join(said)


def tested_page(note: str) -> str:
    """What the exports in docs/tested have shown."""
    proofs = [
        proof for file in sorted(EXPORTS.glob("*.json")) for proof in parse_export(file.read_bytes(), where=file.name)
    ]
    proofs.sort(key=lambda proof: (proof.target, proof.suite, proof.at))
    lines = [
        "# Tested models",
        "",
        note,
        "",
        "What real runs of `dragoman validate` against real models have shown: nothing here was written by hand, and a",
        "model that is not listed was not tested. Each row is an export (`--export`) in `docs/tested`; to add one, run",
        "`dragoman validate TARGET --full-suite --trials 3 --export docs/tested/NAME.json`, then `make docs`.",
        "",
        "| target | tools | wire | ways that work | probes passed | suite | dragoman | day |",
        "|---|---|---|---|---|---|---|---|",
        *map(_row, proofs),
        "",
    ]
    for proof in proofs:
        lines += _tested(proof)
    return "\n".join(lines)


def _row(proof: Proof) -> str:
    passed = sum(result.verdict == "passed" for result in proof.probes.values())
    return (
        f"| `{proof.target}` | {'proven' if is_proven(proof) else 'not proven'} "
        f"| {'clean' if is_clean(proof) else 'not known to be clean'} | {', '.join(proof.ways) or 'none'} "
        f"| {passed} of {len(proof.probes)} | {proof.suite}, version {proof.suite_version} | {proof.dragoman} "
        f"| {datetime.fromtimestamp(proof.at, UTC):%Y-%m-%d} |"
    )


def _tested(proof: Proof) -> list[str]:
    deviations = ", ".join(f"`{code}` ×{count}" for code, count in wire_deviations(proof).items())
    where = proof.endpoint or "the server that dragoman starts"
    return [
        f"## {proof.target}, {proof.suite} suite",
        "",
        f"`{proof.protocol}` at {where}; model {proof.digest or proof.version or 'without a digest'};",
        f"{proof.requests} requests; deviations: {deviations or 'none'}.",
        "",
        "| probe | verdict | trials passed | seen |",
        "|---|---|---|---|",
        *(
            f"| `{name}` | {result.verdict} | {result.passes} of {result.trials} | {_cell(result.reason)} |"
            for name, result in proof.probes.items()
        ),
        *(f"| `{name}` | skipped | | {_cell(reason)} |" for name, reason in proof.skipped.items()),
        "",
    ]


def _cell(text: str) -> str:
    """A server's words in a table: no markup of theirs counts."""
    for letter in "\\`*_{}[]<>|#!":
        text = text.replace(letter, f"\\{letter}")
    return text
