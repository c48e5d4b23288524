"""`dragoman explain`: what becomes of each field of a request."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.commands.explain import fates_of
from dragoman.cli.logged_request import lines_of
from dragoman.cli.main import main
from dragoman.events import Deviation
from growth import MOST_EXPONENT, exponent

SECRET = "the words of the prompt"
BODY = {
    "model": "gpt-5", "instructions": SECRET, "max_output_tokens": 100, "background": False, "top_logprobs": 3,
    "input": [{"role": "user", "content": [{"type": "input_text", "text": f"{SECRET}, twice"}]}],
    "tools": [
        {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False},
        {"type": "image_generation", "quality": "high"},
    ],
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))
    lab = '[providers.lab]\nprotocol = "anthropic-messages"\nbase_url = "http://127.0.0.1:1"\n'
    same = '[providers.same]\nprotocol = "openai-responses"\nbase_url = "http://127.0.0.1:1"\n'
    (tmp_path / "dragoman.toml").write_text(lab + same, encoding="utf-8")
    found = tmp_path / "body.json"
    found.write_text(json.dumps(BODY), encoding="utf-8")
    return found


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["explain", "--to", *words, "--from", "openai-responses", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_each_field_has_its_fate(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, "lab/claude", str(file))
    fates = {each["field"]: each for each in found["fields"]}
    assert found["protocol"] == "anthropic-messages"
    assert fates["instructions"]["paths"] == ["system[].text"]
    assert fates["max_output_tokens"]["fate"] == "elsewhere"
    assert fates["max_output_tokens"]["paths"] == ["max_tokens"]
    assert fates["tools[].name"]["fate"] == "sent"
    assert fates["top_logprobs"]["fate"] == "lost"
    assert "top_logprobs" in fates["top_logprobs"]["why"]
    assert fates["tools[].quality <image_generation>"]["fate"] == "lost"
    assert "image_generation" in fates["tools[].quality <image_generation>"]["why"]
    assert ("dropped", "tools.image_generation") in [(each["code"], each["where"]) for each in found["deviations"]]


def test_a_field_that_is_lost_under_another_name_is_found(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stop_sequences": ["x"]}
    file.write_text(json.dumps(body | {"top_k": 4}), encoding="utf-8")
    assert main(["explain", "--to", "same/gpt-5", "--from", "anthropic", "--json", str(file)]) == 0
    fates = {each["field"]: each for each in json.loads(capsys.readouterr().out)["fields"]}
    assert fates["stop_sequences[]"]["fate"] == "lost" and "params.stop" in fates["stop_sequences[]"]["why"]
    assert fates["messages[].role"]["fate"] == "implied"


GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}],
    "generationConfig": {"thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": True}},
}


def test_of_two_fields_that_exclude_each_other_the_one_that_is_not_sent_is_lost(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The forced call goes out. Of the thinking nothing does, whichever of its fields is left out."""
    calling = {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}}
    file.write_text(json.dumps(GEMINI | calling), encoding="utf-8")
    assert main(["explain", "--to", "anthropic/claude-sonnet-4-5", "--from", "gemini", "--json", str(file)]) == 0
    fates = {each["field"]: each for each in json.loads(capsys.readouterr().out)["fields"]}
    assert fates["toolConfig.functionCallingConfig.mode"]["fate"] == "implied"
    thinking = "generationConfig.thinkingConfig"
    for name in ("thinkingBudget", "includeThoughts"):
        assert fates[f"{thinking}.{name}"]["fate"] == "lost"
        assert "exclude each other" in fates[f"{thinking}.{name}"]["why"]


def test_a_value_that_is_changed_under_another_name_is_found(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(json.dumps(GEMINI), encoding="utf-8")
    assert main(["explain", "--to", "openai/gpt-5", "--from", "gemini", "--json", str(file)]) == 0
    fates = {each["field"]: each for each in json.loads(capsys.readouterr().out)["fields"]}
    assert fates["generationConfig.thinkingConfig.thinkingBudget"]["fate"] == "changed"
    assert "effort" in fates["generationConfig.thinkingConfig.thinkingBudget"]["why"]


def test_at_home_every_field_is_sent_and_no_value_is_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, "same/gpt-5", str(file))
    assert {each["field"] for each in found["fields"] if each["fate"] == "lost"} == set()
    assert main(["explain", "--to", "lab/claude", "--from", "openai-responses", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "top_logprobs" in shown
    assert SECRET not in shown + json.dumps(found)


def test_a_body_that_is_no_request_is_refused_in_words(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[]", encoding="utf-8")
    assert main(["explain", "--to", "lab/claude", "--from", "openai-responses", str(file)]) == 1
    assert "expected" in capsys.readouterr().err
    with file.open("r") as given:
        monkeypatch.setattr("sys.stdin", given)
        assert main(["explain", "--to", "lab/claude", "--from", "openai-responses"]) == 1
    assert "standard input: expected" in capsys.readouterr().err


def test_what_an_earlier_search_found_stands_in_a_text(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not a word that texts have anyway: of a role or a type."""
    found = [
        {
            "type": "web_search_result",
            "url": "https://a.test/rain",
            "title": "Rain in Rome",
            "encrypted_content": "seal",
        }
    ]
    searched = [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rain"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found}]  # fmt: skip
    turns = [{"role": "user", "content": "An assistant?"}, {"role": "assistant", "content": searched}]
    body = {"model": "m", "max_tokens": 9, "messages": [*turns, {"role": "user", "content": "Go on."}]}
    file.write_text(json.dumps(body), encoding="utf-8")
    assert main(["explain", "--to", "gemini/gemini-3-pro", "--from", "anthropic", "--json", str(file)]) == 0
    fates = {each["field"].partition(" <")[0]: each for each in json.loads(capsys.readouterr().out)["fields"]}
    for name in ("content[].content[].url", "content[].content[].title", "content[].input.query", "content[].name"):
        assert fates[f"messages[].{name}"]["paths"] == ["contents[].parts[].text"], name
    assert fates["messages[].content[].content[].encrypted_content"]["fate"] == "lost"
    assert "contents[].parts[].text" not in fates["messages[].role"]["paths"]


def test_a_value_that_stands_nowhere_and_that_nothing_names_is_implied() -> None:
    fates = fates_of({"a": 7, "b": [{"c": "x"}], "d": 5}, {"e": 7}, [Deviation("changed", "params.d", "at most 4")])
    assert [(each.field, each.fate) for each in fates] == [("a", "elsewhere"), ("b[].c", "implied"), ("d", "changed")]


def test_a_common_value_of_a_schema_is_found_where_the_schema_went() -> None:
    schema = {"properties": {"n": {"minimum": 0}}}
    [fate] = fates_of({"tools": [{"input_schema": schema}]}, {"tools": [{"function": {"parameters": schema}}]}, [])
    assert fate.paths == ("tools[].function.parameters.properties.n.minimum",)


def test_a_deviation_tells_of_the_field_whose_path_it_spells_alone() -> None:
    asked = {"messages": [{"type": "t", "cache_control": {"type": "ephemeral"}}], "thinking": {"type": "on"}}
    told = [Deviation("untranslated", "messages[0].parts[0].cache_control.type", "", "note")]
    fates = {each.field: each.fate for each in fates_of(asked, {}, told)}
    assert fates == {"messages[].type": "implied", "messages[].cache_control.type": "lost", "thinking.type": "implied"}


def test_of_two_deviations_the_one_that_spells_more_of_a_path_tells_of_the_field() -> None:
    wide, close = Deviation("changed", "params.reasoning", "x"), Deviation("untranslated", "reasoning.exclude", "y")
    for said in ([wide, close], [close, wide]):
        found = {each.field: each.fate for each in fates_of({"reasoning": {"exclude": True, "other": 1}}, {}, said)}
        assert found == {"reasoning.exclude": "lost", "reasoning.other": "changed"}


def test_the_short_names_of_protocols_are_taken(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--to", "lab/claude", "--from", "responses", str(file)]) == 0
    assert "asked in anthropic-messages" in capsys.readouterr().out


def test_a_target_without_a_key_is_explained(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent, so a key is nothing to ask for."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    found = explained(capsys, "anthropic/claude-sonnet-4-5", str(file))
    assert found["url"] == "https://api.anthropic.com/v1/messages"


@pytest.mark.parametrize("is_in_parts", [False, True])
def test_the_work_grows_with_fields_and_deviations(is_in_parts: bool) -> None:
    """2,000 parts that the target does not know took minutes."""

    def run(count: int) -> object:
        names = [f"odd{number}" for number in range(count)]
        asked: Any = {name: name for name in names}
        where = names
        if is_in_parts:
            asked = {"content": [{"type": name, "more": name} for name in names]}
            where = [f"content[{number}].{name}" for number, name in enumerate(names)]
        return fates_of(asked, {}, [Deviation("dropped", each, "") for each in where])

    assert exponent(run, 50) <= MOST_EXPONENT


_LINES = [
    {"time": "2026-11-23T01:02:03Z", "kind": "config", "text": "in force: abc123"},
    {"time": "2026-11-23T01:02:03Z", "kind": "request", "id": "first", "client_id": "abc123", "outcome": "done",
     "status": 200, "total_ms": 1.0},
    {"time": "2026-11-23T01:02:04Z", "kind": "request", "id": "second", "client_id": "abc123", "provider_id": "p2",
     "outcome": "done", "status": 200, "total_ms": 2.0, "client": "anthropic-messages", "target": "lab/m",
     "attempts": [{"target": "other/m", "outcome": "failed", "reason": "rate"}, {"target": "lab/m", "outcome": "done"}],
     "deviations": {"untranslated": 2}, "lost": ["untranslated cache_control", "dropped tools.web_search"]},
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "dragoman.log"
    found.write_text("\n".join(["no JSON abc123", *map(json.dumps, _LINES)]) + "\n", encoding="utf-8")
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))
    (tmp_path / "dragoman.toml").write_text(f'[server]\nlog = "{found}"\n', encoding="utf-8")
    return found


@pytest.mark.parametrize("id", ["second", "abc123", "p2"])
def test_a_request_of_the_log_is_found_by_any_of_its_ids(
    log: Path, id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--id", id]) == 0
    told = capsys.readouterr().out
    assert "tried other/m: failed rate" in told
    assert "untranslated cache_control" in told
    assert "dropped tools.web_search" in told
    assert "The log keeps no bodies" in told
    assert "dragoman explain --from anthropic-messages --to lab/m body.json" in told
    assert main(["explain", "--id", id, "--log", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == _LINES[2]


def test_what_clients_chose_forges_no_command_and_no_other_request(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = {**_LINES[1], "id": "third", "client_id": "first", "client": "", "target": "lab/m; touch x $(id) `id`"}
    with log.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(forged) + "\n")
    assert main(["explain", "--id", "first", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == _LINES[1]
    assert main(["explain", "--id", "third"]) == 0
    [command] = [line for line in capsys.readouterr().out.splitlines() if "body.json" in line]
    assert shlex.split(command)[-2:] == [forged["target"], "body.json"]
    assert "'" + str(forged["target"]) + "'" in command


def test_a_request_that_lost_nothing_says_so(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--id", "first"]) == 0
    assert "nothing was left out or changed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--id", "third"], "no request with the id 'third'"),
        (["--id", "\udcff"], "no request with the id"),
        (["--id", "second", "--log", "nowhere.log"], "--log nowhere.log: there is no such file"),
        (["--from", "openai"], "expected --from PROTOCOL and --to TARGET"),
    ],
)
def test_what_cannot_be_explained_is_told_in_words(
    log: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *words]) == 2
    assert said in capsys.readouterr().err


def test_without_a_log_file_the_option_is_named(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (log.parent / "dragoman.toml").write_text("", encoding="utf-8")
    assert main(["explain", "--id", "second"]) == 2
    assert "--log" in capsys.readouterr().err


def moved(count: int) -> tuple[Any, Any]:
    """Fields that all hold the same words, under other names."""
    return {f"a{number}": "same" for number in range(count)}, {f"b{number}": "same" for number in range(count)}


def below_a_long_name(count: int) -> tuple[Any, Any]:
    """Many fields below one whose name grows with them."""
    return {"name" * count: {str(number): number for number in range(count)}}, {}


@pytest.mark.parametrize("made", [moved, below_a_long_name])
def test_the_work_grows_with_values_and_names(made: Any) -> None:
    def run(count: int) -> object:
        return fates_of(*made(count), [])

    assert exponent(run, 50) <= MOST_EXPONENT
    assert sum(len(fate.field) + sum(map(len, fate.paths)) for fate in run(400)) < 400 * 150  # type: ignore[attr-defined]


def test_a_line_that_is_too_long_is_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.cli.logged_request._LONGEST", 8)
    for text, lines in (
        (b"a\n" + b"x" * 20 + b"\nb", [b"a\n", b"b"]),
        (b"1234567\n12345678\nb\n", [b"1234567\n", b"b\n"]),
        (b"x" * 8 + b"hidden\n", []),
        (b"", []),
    ):
        assert list(lines_of(io.BytesIO(text))) == lines
