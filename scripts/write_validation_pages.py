"""The pages of docs/reference that tell of validation: every probe, and what real runs have shown."""

import json
from datetime import UTC, datetime
from pathlib import Path

from dragoman.proofs import Proof, is_clean, is_proven, parse_export, wire_deviations
from dragoman.validate.probe import SUITE_VERSION, Expect, Probe, label_of, load_probes

#: What each field of `Expect` asks for, but `calls`.
_WORDS = {
    "text": "some text",
    "text_has": "text with {}",
    "text_lacks": "text without {}",
    "answer": "{} as its only number",
    "called": "a call of {}, with any arguments",
    "no_calls": "no calls",
    "thinking": "some thinking",
    "stop": "stop reason {}",
    "deltas": "text in at least {} pieces",
    "usage": "a plausible token count",
    "most_output": "at most {} reported output tokens",
    "cached": "reported cached tokens",
    "json": "the JSON object {}",
    "failure": "a refusal of kind {}",
    "prompt_read": "reported prompt tokens of at least {} of our estimate",
}
EXPORTS = Path(__file__).resolve().parent.parent / "docs" / "tested"


def probes_page(note: str) -> str:
    """Every probe, in the order of the full suite."""
    lines = [
        "# Probes",
        "",
        note,
        "",
        f"`dragoman validate` asks these questions. The full suite (version {SUITE_VERSION}) asks all of them, in",
        "this order. The quick suite asks the probes marked *always*. If `tool-call` does not pass, it also asks",
        "those marked *after a failure*, and tries the other",
        "[ways of asking for tools](../how-to/models-without-tools.md).",
        "",
        "The seed of a run decides words, names, numbers and the order of tools. dragoman skips a probe if one",
        "that it needs did not pass. The verdict `not-used` means that the model or server left out something",
        "optional, and the last column says what.",
        "",
        "Each probe is a file in `src/dragoman/validate/probes`. To add a probe, add a file. In JSON and JUnit,",
        "`tool-call` has the name of its file, `toolCall`.",
        "",
        "| probe | a model that passes | quick suite | needs | `not-used` means |",
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
        "output limit": f"{probe.params.max_tokens} tokens",
        "thinking": probe.params.reasoning or "",
        "stop": ", ".join(map(str, probe.params.stop)),
        "parallel calls": "" if probe.params.parallel_tools is None else str(probe.params.parallel_tools).lower(),
        "tools offered": ", ".join(f"`{tool.name}`" for tool in probe.tools),
        "sent to another model": probe.target.model or "",
        "sent with another key": probe.target.key or "",
    }
    line = "; ".join(f"{what}: {value}" for what, value in said.items() if value)
    lines.append(f"{line[0].upper()}{line[1:]}.")
    if probe.cases:
        lines += ["", "`{question}` is one of these:", "", *(f"- {case.question}" for case in probe.cases)]
    for number, turn in enumerate(probe.turns, 1):
        what = [f"“{' '.join(turn.user.split())}”"] if turn.user else []
        what += [f"`{name}` gives `{text}`" for name, text in turn.results.items()]
        what += [f"`{name}` fails: `{text}`" for name, text in turn.errors.items()]
        if turn.abort_after is not None:
            what.append(f"dragoman stops reading after {turn.abort_after} pieces")
        lines += ["", f"{number}. {'; '.join(what)}", f"   Expected: {_expected(turn.expect)}."]
    return [*lines, ""]


def _expected(expect: Expect) -> str:
    said = [f"a call of `{call.name}` with exactly `{_shown(call.arguments)}`" for call in expect.calls]
    for name in Expect.__struct_fields__:
        value = getattr(expect, name)
        if name != "calls" and value != getattr(Expect(), name):
            between = " or " if name == "failure" else ", "
            listed = between.join(f"`{one}`" for one in value) if isinstance(value, tuple) else ""
            said.append(_WORDS[name].format(listed or f"`{_shown(value)}`"))
    return "; ".join(said)


def _shown(value: object) -> str:
    """The value as JSON writes it, a text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
        "This page shows what real runs of `dragoman validate` against real models found. Nothing on it was written by",
        "hand. A model that is not listed was not tested. Each row is an export (`--export`) in `docs/tested`. To",
        "add one, run",
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
