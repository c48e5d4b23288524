"""Reports: every form holds what was found, and nothing a server says gets out of its place."""

import html
import json
import re
import xml.etree.ElementTree as ElementTree
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.errors import UsageError
from dragoman.events import Failure, fold, unfold
from dragoman.events import Reply as Answer
from dragoman.proofs import ProbeResult, Proof
from dragoman.types import Cost, Text, Usage
from dragoman.validate.ask import Asked
from dragoman.validate.grade import Grade
from dragoman.validate.report import Report, render_document, render_junit, render_page, render_target, renderer_for
from dragoman.validate.results import Settings, TargetRun, Trial

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[2J \x00 ]]> & \"quoted' \ud83d"


def asked(text: str) -> Asked:
    events = tuple(unfold(Answer("1", "m", 1, (Text(text),), "stop", None, Usage(3, 4), None, None, (), ())))
    return Asked(
        method="POST", url="http://127.0.0.1:1/v1/chat", request=b'{"messages":[{"content":"<b>hi</b>"}]}',
        status=200, response=text.encode("utf-8", "replace"), events=events, reply=fold(events), estimate=9,
        first_event=0.25, seconds=0.5, is_left=False,
    )  # fmt: skip


def report(text: str = "four") -> Report:
    probes = {
        "toolCall": ProbeResult("passed", "1 call, as asked", passes=3, trials=3),
        "reasoning": ProbeResult("failed", f"expected 4, got {text}", passes=1, trials=3),
        "cache": ProbeResult("not-used", "no cached tokens are reported"),
        "stop": ProbeResult("unsupported", "cannot be said"),
        "abort": ProbeResult("error", "connection: broke"),
    }
    proof = Proof(
        target="lab/<b>model</b>", protocol="openai-chat", endpoint="http://127.0.0.1:1/v1", digest="sha256:aa",
        suite="full", suite_version=1, dragoman="0.1.0", at=1_760_000_000, probes=probes,
        skipped={"overflow": "the context window is not known"}, deviations={"missing-id": 2, "dropped": 1},
        ways=("native",), first_event=0.25, tokens_per_second=40.0, cost=Cost(Decimal("0.0123"), "user"), requests=15,
    )  # fmt: skip
    trials = tuple(
        Trial(name, 0, True, "native", Grade(one.verdict, one.reason), (asked(text),)) for name, one in probes.items()
    )
    runs = (
        TargetRun("lab/<b>model</b>", proof, trials),
        TargetRun("lab/gone", None, problem=f"connection: no connection {text}"),
    )
    return Report("0.1.0", Settings(suite="full", trials=3, seed="<7>"), 1_760_000_000, 12.5, runs)


# ---------------------------------------------------------------- HTML


class Page(HTMLParser):
    """The elements of a page, and its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.outside: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag != "meta":
            self.open.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), f"a handler: {name}"
            if name == "id":
                self.ids.add(str(value))
            if name == "href":
                self.links.append(str(value))
            if name in ("src", "srcset", "action", "data"):
                self.outside.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("text", ["four", HOSTILE])
def test_the_page_is_whole_in_itself_and_holds_no_markup_of_a_server(text: str) -> None:
    data = render_page(report(text)).decode()
    page = Page(data)
    assert page.open == []
    assert page.outside == [] and "@import" not in data and "url(" not in data
    assert {"script", "img", "link", "iframe", "b"}.isdisjoint(page.elements)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert "default-src 'none'" in data


def test_each_cell_opens_the_wire_and_the_events() -> None:
    data = render_page(report()).decode()
    assert data.count('href="#cell-0-') == 5
    section = data[data.index('id="cell-0-reasoning"') :].partition("</section>")[0]
    shown = html.unescape(re.sub(r"<[^>]+>", "", section))
    assert "expected 4, got four" in shown
    assert '"content": "<b>hi</b>"' in shown  # the request
    assert '{"type":"TextDelta","index":0,"text":"four"}' in shown
    assert "the context window is not known" in data


def test_a_cell_shows_how_an_answer_failed_and_no_more_of_a_long_one_than_a_person_reads() -> None:
    found = report()
    reply = msgspec.structs.replace(asked("x").reply, error=Failure("server", "it broke", 500))
    turn = msgspec.structs.replace(asked("x"), reply=reply, response=b"y" * 30_000)
    trial = msgspec.structs.replace(found.runs[0].trials[0], turns=(turn,))
    run = msgspec.structs.replace(found.runs[0], trials=(trial,))
    page = render_page(msgspec.structs.replace(found, runs=(run,))).decode()
    assert "server: it broke" in page
    assert "10,000 more characters" in page and page.count("y" * 20_000) == 1 and "y" * 20_001 not in page


@pytest.mark.parametrize("levels", [30, 480, 900, 5_000])
def test_what_a_model_nested_is_shown_all_the_same(levels: int) -> None:
    """The arguments of its call stand in the next request."""
    found = report()
    deep = msgspec.structs.replace(asked("x"), request=b'{"a":' + b"[" * levels + b"1" + b"]" * levels + b"}")
    trial = msgspec.structs.replace(found.runs[0].trials[0], turns=(deep,))
    run = msgspec.structs.replace(found.runs[0], trials=(trial,))
    page = render_page(msgspec.structs.replace(found, runs=(run,))).decode()
    assert re.search(r"\[\s*1\s*\]", page)


def test_a_page_begins_with_the_verdict_why_and_what_to_do() -> None:
    both = report()
    alone = msgspec.structs.replace(both, runs=both.runs[:1])
    shown = [html.unescape(re.sub(r"<[^>]+>", "\n", render_page(one).decode())) for one in (both, alone)]
    many, single = ([line for line in text.partition("}\n}\n")[2].splitlines() if line] for text in shown)
    assert many[0] == "0 of 2 models usable as an agent; 2 unknown"
    assert many.index("model") < many.index("Probes") < many.index("Why")
    assert single[:2] == [
        "lab/<b>model</b>",
        "Unknown as an agent: it calls the tool as asked, but whether it answers from a tool's result was not shown.",
    ]
    assert single.index("Why") < single.index("What to do") < single.index("Probes")
    for lines in (many, single):
        assert {"first event", "speed", "cost", "$0.0123", "40 tokens/s"} <= set(lines)
        assert "tool-call" in lines and not any("toolCall" in line for line in lines)


def test_raw_events_are_folded_and_a_mark_is_a_link() -> None:
    data = render_page(report()).decode()
    assert "<details>" in data and "<details open" not in data
    assert len(re.findall(r'<a class="mark [a-z-]+" href="#cell-0-', data)) == 5


# ---------------------------------------------------------------- JUnit


@pytest.mark.parametrize("text", ["four", HOSTILE])
def test_junit_is_xml_with_a_case_for_each_probe(text: str) -> None:
    root = ElementTree.fromstring(render_junit(report(text)))
    model, gone = root.findall("testsuite")
    assert (model.get("tests"), model.get("failures"), model.get("errors"), model.get("skipped")) == (
        "6",
        "1",
        "1",
        "3",
    )
    cases = {case.get("name"): [child.tag for child in case] for case in model.findall("testcase")}
    assert cases == {
        "toolCall": ["system-out"], "reasoning": ["failure"], "cache": ["skipped"], "stop": ["skipped"],
        "abort": ["error"], "overflow": ["skipped"],
    }  # fmt: skip
    assert gone.get("errors") == "1"


# ---------------------------------------------------------------- JSON and the terminal


@pytest.mark.parametrize("text", ["four", HOSTILE])
def test_the_document_holds_everything(text: str) -> None:
    document: dict[str, Any] = json.loads(render_document(report(text)))
    model, gone = document["targets"]
    assert (document["format"], document["settings"]["seed"]) == ("dragoman-validation", "<7>")
    assert model["proof"]["probes"]["reasoning"]["verdict"] == "failed"
    assert model["trials"][1]["turns"][0]["request"].startswith('{"messages"')
    assert model["trials"][0]["turns"][0]["events"][0]["type"] == "Start"
    assert (gone["proof"], gone["problem"][:10]) == (None, "connection")


def test_the_table_has_a_bar_for_each_probe() -> None:
    model, gone = report().runs
    lines = render_target(model, paint=lambda colour, text: text).splitlines()
    assert "  ✓ tool-call  ██████████ 3/3  1 call, as asked" in lines
    assert any(line.startswith("  ✗ reasoning  ███░░░░░░░ 1/3  failed: expected 4") for line in lines)
    assert "  · overflow   skipped: the context window is not known" in lines
    assert "deviations: missing-id ×2" in lines[-1]
    assert all(len(line) <= 120 for line in lines)
    told = render_target(gone, paint=lambda colour, text: text)
    assert told.startswith(
        "lab/gone\n  Unknown as an agent: it could not be validated.\n  why  connection: no connection"
    )
    assert "  do   Start the server, or correct the provider's base_url." in told


def test_probes_that_were_skipped_for_one_reason_share_its_line() -> None:
    model = report().runs[0]
    skipped = {"streams": "no connection", "overflow": "needs text", "usage": "no connection", "toolCall": "asked"}
    assert model.proof is not None and "toolCall" in model.proof.probes
    run = msgspec.structs.replace(model, proof=msgspec.structs.replace(model.proof, skipped=skipped))
    lines = render_target(run, paint=lambda colour, text: text).splitlines()
    first = next(place for place, line in enumerate(lines) if "skipped: " in line)
    assert [line.split() for line in lines[first : first + 3]] == [
        ["·", "2", "probes", "skipped:", "no", "connection"],
        ["streams,", "usage"],
        ["·", "overflow", "skipped:", "needs", "text"],
    ]


@pytest.mark.parametrize("width", [1, 20, 40, 63, 80, 120])
def test_no_line_of_the_table_is_wider_than_the_terminal(width: int) -> None:
    for run in report().runs:
        lines = render_target(run, paint=lambda colour, text: text, width=width).splitlines()
        assert max(map(len, lines)) <= width or width < 40, "words are not broken"
        assert any("█" in line for line in lines) == (run.proof is not None and width > 63)


def test_a_reports_form_follows_its_ending(tmp_path: Path) -> None:
    assert renderer_for(tmp_path / "b.HTML") is render_page
    assert renderer_for(Path("b.xml")) is render_junit
    with pytest.raises(UsageError, match="there is no folder"):
        renderer_for(tmp_path / "nowhere" / "b.xml")
    with pytest.raises(UsageError, match=r"expected a file that ends in \.json, \.xml, \.html"):
        renderer_for(Path("b.txt"))
