"""Thinking between tags: which tags count, where, and that cuts change nothing."""

from __future__ import annotations

import itertools
import random
import re

from dragoman.events import (
    Event,
    Failure,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
    fold,
)
from dragoman.protocol import PLAIN, Dialect
from dragoman.response_stages import Policy, ThinkingTags, stages_for
from dragoman.stages.thinking.tags import WATCHED
from dragoman.types import Native, Raw, Text, Thinking, Tool, ToolCall, Usage
from for_each import for_each
from grammar import check

OPENED = Dialect(thinking_opened=True)
NAMED = Dialect(thinking_tags=("<reasoning>", "</reasoning>"))
CHANNEL = "<|channel|>analysis<|message|>"

#: name → (dialect, text of the message, thinking, text)
NOTE = "<|channel|>commentary to=assistant"
TAGGED: dict[str, tuple[Dialect, str, str, str]] = {
    "think": (PLAIN, "<think>Two and two.</think>4", "Two and two.", "4"),
    "thinking": (PLAIN, "<thinking>Hm.</thinking>\n\nYes.", "Hm.", "Yes."),
    "seed": (PLAIN, "<seed:think>short</seed:think>Good.", "short", "Good."),
    "magistral": (PLAIN, "[THINK]Bonjour?[/THINK]Salut !", "Bonjour?", "Salut !"),
    "command": (PLAIN, "<|START_THINKING|>plan<|END_THINKING|>done", "plan", "done"),
    "harmony": (PLAIN, CHANNEL + "Greet.<|end|><|start|>assistant<|channel|>final<|message|>Hi!", "Greet.", "Hi!"),
    "harmony with its last token": (
        PLAIN,
        CHANNEL + "Greet.<|end|><|start|>assistant<|channel|>final<|message|>Hi!<|return|>",
        "Greet.",
        "Hi!",
    ),
    "harmony whole": (
        PLAIN,
        "<|start|>assistant" + CHANNEL + "One.<|end|><|start|>assistant" + CHANNEL + "Two.<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>A moment.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Three.<|return|>",
        "One.Two.",
        "A moment.Three.",
    ),
    "harmony without an end": (PLAIN, CHANNEL + "Greet.<|channel|>final<|message|>Hi!", "Greet.", "Hi!"),
    "harmony's answer alone": (PLAIN, "<|channel|>final<|message|>Hi!<|return|>", "", "Hi!"),
    "harmony before a call": (
        PLAIN,
        CHANNEL + "Look.<|end|><|start|>assistant<|channel|>commentary to=functions.look <|message|>{}",
        "Look.",
        "<|start|>assistant<|channel|>commentary to=functions.look <|message|>{}",
    ),
    "harmony without its tokens": (
        PLAIN,
        'analysisSay "hi", no more.\nDone.assistantfinalHi!',
        'Say "hi", no more.\nDone.',
        "Hi!",
    ),
    "harmony without its tokens, before a call": (
        PLAIN,
        "assistantanalysisLook.assistantcommentary to=functions.look json{}",
        "Look.",
        "assistantcommentary to=functions.look json{}",
    ),
    "Cohere's text": (PLAIN, "a<|END_THINKING|><|START_TEXT|>b<|END_TEXT|><|END_OF_TURN_TOKEN|>", "a", "b"),
    "Cohere's older text": (PLAIN, "a<|END_THINKING|><|START_RESPONSE|>b<|END_OF_TURN_TOKEN|>", "a", "b"),
    "Kimi K3's text": (PLAIN, "<|open|>response<|sep|>a<|close|>response<|sep|><|close|>message<|sep|>", "", "a"),
    "Inkling": (
        PLAIN,
        "<|content_thinking|>a<|end_message|><|message_model|><|content_text|>b<|content_model_end_sampling|>",
        "a",
        "b",
    ),
    "Inkling's text alone": (PLAIN, "<|message_model|><|content_text|>It rains.<|end_message|>", "", "It rains."),
    "Inkling's thinking before a call": (
        PLAIN,
        "<|content_thinking|>a<|message_model|>f<|content_invoke_tool_json|>{}",
        "a",
        "<|message_model|>f<|content_invoke_tool_json|>{}",
    ),
    "Gemma's channel": (PLAIN, "<|channel>thought\nTwo.\n<channel|>4", "Two.", "4"),
    "Gemma's channel without its name": (PLAIN, "<|channel>Two.<channel|><|channel>Four.<channel|>4", "Two.Four.", "4"),
    "Gemma's channel opened twice": (PLAIN, "<|channel><|channel>thought\nTwo.<channel|>4", "Two.", "4"),
    "Gemma's empty channel at the end": (PLAIN, "4<|channel>thought\n<channel|>", "", "4"),
    "Gemma's empty channel twice": (PLAIN, "4<|channel>thought\n<channel|><channel|>", "", "4"),
    "harmony's channel in a note to itself": (
        PLAIN,
        NOTE + "<|channel|>analysis<|message|>Look.<|end|><|start|>assistant" + NOTE + "<|channel|>final<|message|>Hi!",
        "Look.",
        "Hi!",
    ),
    "Apriel": (PLAIN, "Two and two.\n[BEGIN FINAL RESPONSE]\n4", "Two and two.\n", "4"),
    "a closing tag at the end behind thinking": (PLAIN, "<think>Two.</think>4</think>", "Two.", "4"),
    "a closing tag at the end behind a lone one": (PLAIN, "Two.</think>4\n</think>\n", "Two.", "4\n"),
    "the dialect's pair": (NAMED, "<reasoning>Since.</reasoning> So.", "Since.", "So."),
    "a known pair beside the dialect's": (NAMED, "<think>Since.</think> So.", "Since.", "So."),
    "white space around": (PLAIN, "\n \n<think>\n\n Add. \n</think>\n\n 4 \n", "Add.", "4 \n"),
    "white space within": (PLAIN, "<think>a\n\n  b</think>c", "a\n\n  b", "c"),
    "nothing thought": (PLAIN, "<think>\n\n</think>\n\nHello.", "", "Hello."),
    "twice": (PLAIN, "<think>one</think>\n<think>two</think>\nthree", "onetwo", "three"),
    "two kinds": (PLAIN, "<think>one</think>[THINK]two[/THINK]three", "onetwo", "three"),
    "opened twice": (PLAIN, "<think>\n<think>one</think>two", "one", "two"),
    "unclosed": (PLAIN, "<think>All of this goes on", "All of this goes on", ""),
    "half a closing tag": (PLAIN, "<think>on</thi", "on</thi", ""),
    "other tags inside": (PLAIN, "<think>if a<b and [x] </thinking></think>ok", "if a<b and [x] </thinking>", "ok"),
    "lone closing tag": (PLAIN, "So it is four.</think>4", "So it is four.", "4"),
    "lone closing tag, then space": (PLAIN, "So it is four.\n</think>\n\n4", "So it is four.\n", "4"),
    "lone closing tag of another pair": (PLAIN, "Bien.[/THINK]Oui.", "Bien.", "Oui."),
    "lone closing tag, code before": (PLAIN, "`x<y`\n```\nz\n```\nok.</think>Done", "`x<y`\n```\nz\n```\nok.", "Done"),
    "lone closing tag after quoted words": (PLAIN, 'They said "hi"</think>Hi!', 'They said "hi"', "Hi!"),
    "lone closing tag, then opened again": (PLAIN, "a</think><think>b</think>c", "ab", "c"),
    "lone closing tag first": (PLAIN, "\n</think>\n\nHello.", "", "Hello."),
    "closing tags again and again": (PLAIN, "<think>a</think>b</think>c</think>d", "abc", "d"),
    "second closing tag": (PLAIN, "<think>a</think></think>b", "a", "b"),
    "opened by the template": (OPENED, "We add.</think>4", "We add.", "4"),
    "opened by the template and by the model": (OPENED, "<think>We add.</think>4", "We add.", "4"),
    "opened by the template, never closed": (OPENED, "We add", "We add", ""),
}  # fmt: skip

TEXTS = {
    "plain": "Four.",
    "empty": "",
    "white space": " \n ",
    "mentioned": "Models write <think> before and </think> behind what they think.",
    "after words": "Sure: <think>not now</think> ok",
    "mentioned first in code": "`<think>` opens thinking.",
    "closing in code": "The tag `</think>` closes it.",
    "closing in a fence": "Like so:\n```\n</think>\n```\nand on.",
    "closing in an open fence": "Like so:\n~~~xml\na</think>b",
    "closing in quotation marks": 'It ends with "</think>" and goes on.',
    "closing in single ones": "('</thinking>', 'x')",
    "closing in guillemets": "Elle finit par « a » ou «</think>» ici.",
    "closing in a JSON answer": '{"tags": ["a</think>"]}',
    "half a tag": "<thi",
    "half a tag, then words": "<thinker> is no tag",
    "half a closing tag at the end": "a < b </thin",
    "upper case": "<THINK>loud</THINK>",
    "an answer in brackets": "[THINKING] is a word",
    "Gemma's empty channel within": "4<|channel>thought\n<channel|> and on",
    "Gemma's empty channel in code": "It writes `<|channel>thought\n<channel|>`",
    "Gemma's empty channel in an open fence": "~~~\n<|channel>thought\n<channel|>",
    "another channel": "<|channel|>commentary to=functions.f<|message|>{}",
    "a word": "analysis",
    "a word of several": "analysis of the log: assistantfinal is a word",
    "a name": " analysisResult = 1  # the assistantfinal channel",
    "a name with a line": "analysis_result is what assistantfinal gives",
    "a call of a name": "analysisOf(1) says.assistantfinal",
    "a lone tag behind a name": "analysisResult `</think>` is long enough for all that is held of a text",
    "harmony's channel behind words": "As said, analysisLook.assistantfinalHi!",
    "comparison": "a<b, [1], c>d",
    "the end of a turn first": "<|END_OF_TURN_TOKEN|> ends a turn.",
}


def say(text: str, *, cuts: list[int] | None = None) -> list[Event]:
    """The events of a message of this text, cut there."""
    places = [0, *(cuts or []), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    deltas = [TextDelta(0, piece) for piece in pieces if piece]
    return [Start(), TextStart(0), *deltas, TextEnd(0), Finish("stop")]


def read(events: list[Event], dialect: Dialect = PLAIN) -> Reply:
    """What they come to when each is fed alone; all at once must come to the same."""
    stage, at_once = ThinkingTags(dialect), ThinkingTags(dialect)
    out = [one for event in events for one in stage.feed([event])]
    assert check(at_once.feed(events)) == check(out)
    return fold(out)


@for_each(("dialect", "message", "thinking", "text"), TAGGED.values(), ids=TAGGED)
def test_tags(dialect: Dialect, message: str, thinking: str, text: str):
    reply = read(say(message), dialect)
    assert (reply.thinking, reply.text) == (thinking, text)
    assert all(part.text for part in reply.parts)  # type: ignore[union-attr]


@for_each(("dialect", "message"), [case[:2] for case in TAGGED.values()], ids=TAGGED)
def test_cuts_change_nothing(dialect: Dialect, message: str):
    whole = read(say(message), dialect)
    assert read(say(message, cuts=list(range(1, len(message)))), dialect) == whole
    for cut in range(1, len(message)):
        assert read(say(message, cuts=[cut]), dialect) == whole, f"cut at {cut}"


@for_each("message", TEXTS.values(), ids=TEXTS)
def test_text_stays_text(message: str):
    for cuts in ([], list(range(1, len(message))), *([cut] for cut in range(1, len(message)))):
        reply = read(say(message, cuts=cuts))
        assert (reply.text, reply.thinking, reply.deviations) == (message, "", ())


def test_three_cuts_around_every_tag():
    message = "<think>a</think>b"
    whole = read(say(message))
    for first in range(1, len(message)):
        for second in range(first, len(message)):
            assert read(say(message, cuts=[first, second])) == whole


MIXED = [
    *(tag for case in TAGGED.values() for tag in re.findall(r"<[^<>]+>|\[/?THINK\]", case[1])),
    " ", "\n", "word", "a `b", "```", "\n```\n", '"', "'", "(", "{", "<", "[", "</", "th", "[/",
]  # fmt: skip


@for_each("dialect", [PLAIN, OPENED, NAMED], ids=["plain", "opened", "named"])
def test_any_mixture_is_read_the_same_however_it_is_cut(dialect: Dialect):
    chance = random.Random(11)
    for _ in range(60):
        message = "".join(chance.choices(MIXED, k=chance.randint(1, 10)))
        whole = read(say(message), dialect)
        assert read(say(message, cuts=list(range(1, len(message)))), dialect) == whole, message
        cut = chance.randint(0, len(message))
        assert read(say(message, cuts=[cut]), dialect) == whole, (message, cut)


def test_what_cannot_be_a_tag_leaves_at_once():
    stage = ThinkingTags()
    stage.feed([Start(), TextStart(0)])
    assert stage.feed([TextDelta(0, "<")]) == []
    assert stage.feed([TextDelta(0, "p> word")]) == [TextStart(0), TextDelta(0, "<p> word")]
    delta = TextDelta(0, "and on")
    assert stage.feed([delta])[0] is delta
    assert stage.feed([TextDelta(0, "a </b")]) == [TextDelta(0, "a </b")]
    assert stage.feed([TextDelta(0, "c</th")]) == [TextDelta(0, "c")]
    assert stage.feed([TextDelta(0, "ree")]) == [TextDelta(0, "</three")]


def test_thinking_is_live():
    stage = ThinkingTags()
    stage.feed([Start(), TextStart(0), TextDelta(0, "<think>\n")])
    assert [type(event) for event in stage.feed([TextDelta(0, "One ")])][-2:] == [ThinkingStart, ThinkingDelta]
    assert stage.feed([TextDelta(0, "two")]) == [ThinkingDelta(0, " two")]


def test_a_deviation_says_it_once():
    reply = read(say("<think>a</think>b"))
    assert [deviation.code for deviation in reply.deviations] == ["thinking-as-text"]


@for_each("dialect", [OPENED, NAMED])
def test_what_the_dialect_says_is_no_deviation(dialect: Dialect):
    assert read(say("<think>a</think>b"), dialect).deviations == ()


def test_tags_count_after_structured_thinking():
    before: list[Event] = [Start(), ThinkingStart(0), ThinkingDelta(0, "x"), ThinkingEnd(0), TextStart(1)]
    after: list[Event] = [TextEnd(1), Finish("stop")]
    assert read([*before, TextDelta(1, "<think>y</think>z"), *after]).thinking == "xy"
    assert read([*before, TextDelta(1, "</think>z"), *after]).text == "z"
    for dialect in (PLAIN, OPENED):
        lone = read([*before, TextDelta(1, "y</think>z"), *after], dialect)
        assert (lone.thinking, lone.text) == ("xy", "z")


#: What follows a text at whose end a closing tag stands, and whether the text was the answer.
FOLLOWS: list[tuple[list[Event], bool]] = [
    ([Finish("stop")], True),
    ([UsageUpdate(Usage(input=1)), Finish("stop")], True),
    ([Failure("wire", "cut")], True),
    ([ToolCallStart(2, "c", "look"), ToolCallEnd(2, ToolCall("c", "look", "{}")), Finish("tool_use")], False),
    ([TextStart(2), TextDelta(2, "z"), TextEnd(2), Finish("stop")], False),
    ([ThinkingStart(2), ThinkingDelta(2, "z"), ThinkingEnd(2), Finish("stop")], False),
]


@for_each(("behind", "is_answer"), FOLLOWS)
@for_each("said", ["4\n</think>\n", "</think>4</think>", "<think>y</think>4</think>"])
def test_a_closing_tag_at_the_end_leaves_the_answer_unless_more_follows(
    said: str, behind: list[Event], is_answer: bool
):
    before: list[Event] = [Start(), ThinkingStart(0), ThinkingDelta(0, "x"), ThinkingEnd(0), TextStart(1)]
    for size in (1, 3, 100):
        pieces = [TextDelta(1, said[at : at + size]) for at in range(0, len(said), size)]
        for together in (False, True):
            stage = ThinkingTags()
            events = [*before, *pieces, TextEnd(1), *behind]
            batches = [events] if together else [[event] for event in events]
            reply = fold([event for batch in batches for event in stage.feed(batch)])
            assert ("4" in reply.text, "4" in reply.thinking) == (is_answer, not is_answer), size


def test_parts_behind_move_on():
    call = ToolCall("call_1", "look", "{}")
    events: list[Event] = [
        Start(), TextStart(0), TextDelta(0, "<think>a</think>b"), TextEnd(0),
        ToolCallStart(1, "call_1", "look"), ToolCallDelta(1, "{}"), ToolCallEnd(1, call),
        TextStart(2), TextDelta(2, "<think>c</think>"), TextEnd(2), Finish("tool_use"),
    ]  # fmt: skip
    assert read(events).parts == (Thinking("a"), Text("b"), call, Text("<think>c</think>"))


def test_parts_beside_keep_their_places():
    call = ToolCall("call_1", "look", "{}")
    events: list[Event] = [
        Start(), TextStart(0), TextDelta(0, "<think>a"), ToolCallStart(1, "call_1", "look"), ToolCallDelta(1, "{}"),
        TextDelta(0, "</think>b"), ToolCallEnd(1, call), TextEnd(0), TextStart(2), TextDelta(2, "d"), TextEnd(2),
        Finish("tool_use"),
    ]  # fmt: skip
    reply = read(events)
    assert (reply.thinking, reply.text, reply.tool_calls) == ("a", "bd", [call])


def test_seal_and_fields_stay_with_what_is_left():
    native = Native("gemini-generate", {"a": Raw(b"1")})
    events: list[Event] = [
        Start(), TextStart(0, native), TextDelta(0, "<think>a</think>b"), TextEnd(0, signature="seal"), Finish("stop"),
    ]  # fmt: skip
    assert read(events).parts == (Thinking("a", native=native), Text("b", "seal"))
    events[2] = TextDelta(0, "<think>a</think>")
    assert read(events).parts == (Thinking("a", native=native), Text("", "seal"))


def test_a_failure_lets_go_of_what_was_held():
    stage = ThinkingTags()
    out = stage.feed([Start(), TextStart(0), TextDelta(0, "<thi"), Failure("connection", "broken")])
    assert fold(check(out)).text == "<thi"


def test_very_long_text_is_watched_no_more():
    text = "word " * (WATCHED // 5 + 1) + "</think>end"
    assert read(say(text, cuts=[WATCHED + 5])).text == text


def test_calls_behind_thinking_are_found():
    tools = (Tool("look", schema=Raw(b'{"type":"object","properties":{"at":{"type":"string"}}}')),)
    body = '<tool_call>{"name": "look", "arguments": {"at": "sky"}}</tool_call>'
    bare = '{"name": "look", "parameters": {"at": "sky"}}'
    unmarked = 'analysisupassistantcommentary to=functions.look json{"at": "sky"}'
    for message in (
        "<think>up</think>" + body,
        "up</think>" + body,
        "<think>up</think>" + bare,
        "up</think>" + bare,
        unmarked,
    ):
        for cuts in ([], list(range(1, len(message)))):
            events = say(message, cuts=cuts)
            for stage in stages_for(tools, Policy(sequential=True), new_id=iter("abcdefghijkl").__next__):
                events = [one for event in events for one in stage.feed([event])]
            reply = fold(check(events))
            assert (reply.thinking, reply.text) == ("up", "")
            assert [call.arguments for call in reply.tool_calls] == ['{"at": "sky"}']


@for_each(
    ("text", "thinking", "left"),
    [
        (
            "The parser looks for </think> and then reads JSON.",
            "",
            "The parser looks for </think> and then reads JSON.",
        ),
        ("Deep </think>\nAnswer.", "Deep", "Answer."),
        ("Deep </think>  \nAnswer.", "Deep", "Answer."),
        ("Deep\n  </think> Answer.", "Deep", "Answer."),
        ("Deep</think> Answer.", "Deep", "Answer."),
        ("Deep </think>", "Deep", ""),
        ("`a </think>", "", "`a </think>"),
        ('He said "</think>', "", 'He said "</think>'),
    ],
)
@for_each("size", [1, 3, 100])
def test_a_lone_closing_tag_inside_a_sentence_is_text(text: str, thinking: str, left: str, size: int):
    stage = ThinkingTags()
    pieces = [TextDelta(0, text[start : start + size]) for start in range(0, len(text), size)]
    events: list[Event] = [Start(), TextStart(0), *pieces, TextEnd(0), Finish("stop")]
    reply = fold(check([out for event in events for out in stage.feed([event])]))
    assert (reply.thinking.strip(), reply.text) == (thinking, left)


@for_each(
    ("begins", "rest"),
    [
        ("a", " cat sat on the mat"),
        ("an", "d so it went"),
        ("analysis", " of the log"),
        ("Analysis", ": all is well"),
        ("ass", "ume nothing"),
        ("assistant", "s help"),
        ("analys", "e it"),
        ("assistantanalysis", " is no word"),
        ("analysis_", "result = 1"),
        ("analysisResult =", " 1"),
    ],
)
def test_an_answer_that_begins_like_harmony_leaves_with_the_next_character(begins: str, rest: str):
    """No letter that tells an ordinary word from `analysis` is waited behind."""
    stage = ThinkingTags()
    stage.feed([Start(), TextStart(0)])
    told = ""
    for letter in begins + rest:
        told += "".join(event.text for event in stage.feed([TextDelta(0, letter)]) if isinstance(event, TextDelta))
        if len(told) > len(begins):
            break
    assert told == (begins + rest)[: len(begins) + 1]
