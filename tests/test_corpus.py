"""Every case of tests/corpus, however its bytes arrive, and the shape of the corpus itself."""

from __future__ import annotations

from cases import Case, differences, load_cases, play
from for_each import for_each
from profiles import IS_SOAK

CASES = load_cases()
IDS = [f"{case.protocol}/{case.name}" for case in CASES]
#: Cuts of one case: about as many in `make test`, all in `make soak`.
MOST = 10**6 if IS_SOAK else 10


def test_the_corpus_is_there():
    assert len(CASES) >= 60
    assert {case.protocol for case in CASES} == {
        "ollama-chat",
        "openai-chat",
        "openai-responses",
        "anthropic-messages",
        "gemini-generate",
    }


@for_each("case", CASES, ids=IDS)
def test_whole(case: Case):
    assert differences(case, play(case, [case.wire])) == []


@for_each("case", CASES, ids=IDS)
def test_byte_by_byte(case: Case):
    assert play(case, [bytes([byte]) for byte in case.wire]) == play(case, [case.wire])


@for_each("case", CASES, ids=IDS)
def test_every_cut_in_two(case: Case):
    whole = play(case, [case.wire])
    step = max(1, len(case.wire) // MOST)
    for cut in range(0, len(case.wire) + 1, step):
        assert play(case, [case.wire[:cut], case.wire[cut:]]) == whole, f"cut at byte {cut}"


@for_each("case", CASES, ids=IDS)
def test_line_ends(case: Case):
    if b"\r" in case.wire or case.wire[:2] == b"\x1f\x8b":
        other = case.wire.replace(b"\r\n", b"\n") if case.wire[:2] != b"\x1f\x8b" else case.wire
    else:
        other = case.wire.replace(b"\n", b"\r\n")
    assert differences(case, play(case, [other])) == []
