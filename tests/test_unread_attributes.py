"""What a call's tags say beside what is read of them: attributes, words, odd names. Nothing runs without it."""

from __future__ import annotations

import re

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Form
from test_moved_parameters import parts_of
from test_written_calls import delivered, exact, play, play_with

ATTRIBUTES = (' timeout="5"', " dry_run", " timeout=5", " timeout='5'", ' timeout="5" dry_run="true"')[
    : 5 if IS_SOAK else 2
]
BLANKS = (" ", "\u2028", "\u200b", "\u00a0", "\u3000", "\ufeff")[: 6 if IS_SOAK else 3]
ALMOST = ("ｇet_time", "“get_time”", "get_time\u200b", "Get_Time", "get-time", "«get_time»")[: 6 if IS_SOAK else 2]
TAGGED = [form for form in FORMS if form.closes == "tag"]
#: Ends of opening tags, as far as attributes may stand before them.
TAG_ENDS = re.compile(r"(?<=[\w\"'])(?:>|<\|sep\|>)|(?<=\w)\|>")
CALL = ("run_command", {"command": "ls"})
#: Where a family has a word of its own that is no argument: a call's id or kind, a server, a type, a recipient.
OWN_WORDS = {
    "mistral": r"(?<=\[CALL_ID\])\w+",
    "deepseek": r"(?<=begin｜>)function",
    "step3": r"(?<=begin｜>)function",
    "k2-horizon": r"(?<=arg_type>)\w+",
    "mcp-tags": r"(?<=server_name>)\w+",
    "muse-glimmer": r"(?<= to=)\w+",
}
STEP = 1 if IS_SOAK else 17
NEXT = ("get_time", {"zone": "Oslo"})


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_an_attribute_is_no_argument_that_is_lost(form: Form):
    """Wherever one stands, the call has it, or fails, or it is shown."""
    text = form.write([CALL]).text()
    for found in TAG_ENDS.finditer(text):
        for attribute in ATTRIBUTES:
            written = f"{text[: found.start()]}{attribute}{text[found.start() :]}"
            for size in (len(written), *some([3], written, 3)):
                reply = play(written, "stop", size)
                said = reply.text + repr(delivered(reply)[:1])
                assert reply.error or attribute.strip() in said, f"{written!r}: {delivered(reply)}"


#: What says which call it is.
LABELS = (' id="1"', ' id="call_ab-1"', " id='toolu:1.2'", ' index="0"', ' tool_call_id="c1"', ' type="function"',
          ' id="1" type="function"', " id=1")  # fmt: skip
LABELLED = [
    form
    for form in TAGGED
    if form.write([CALL]).text().count('run_command">') or "=run_command>" in form.write([CALL]).text()
]


@for_each("form", LABELLED, ids=lambda form: f"{form.family}: {form.name}")
@for_each("label", LABELS)
def test_a_label_of_a_call_is_no_argument(form: Form, label: str):
    """Where the tool has an argument of its name, it may be one."""
    head = re.compile('run_command"?(?=>)')
    text = head.sub(lambda found: found[0] + label, form.write([CALL, NEXT]).text())
    for size in (len(text), *some([3], text, 3)):
        assert delivered(play(text, "stop", size)) == [CALL, NEXT], text
    key = label.split("=")[0].strip()
    properties = {"command": {"type": "string"}, key: {"type": "string"}}
    tool = Tool("run_command", "", _json.raw({"type": "object", "properties": properties}))
    assert delivered(play_with([tool], text, "stop", len(text))) == []


@for_each("form", LABELLED, ids=lambda form: f"{form.family}: {form.name}")
@for_each("twice", [' timeout="5" timeout="6"', ' id="1" id="2"'])
def test_an_attribute_that_comes_twice_is_none_that_is_read(form: Form, twice: str):
    text = re.sub('run_command"?(?=>)', lambda found: found[0] + twice, form.write([CALL]).text())
    assert delivered(play(text, "stop", len(text))) == [], text


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
@for_each("words", ["So:\n", "\nI run it.\n\n", "<assistant>"])
def test_words_before_a_parameter(form: Form, words: str):
    """The call is told as one that failed, and the next one runs or fails."""
    lead, begin, parameter, closing, tail = parts_of(form, "get_time", {"zone": "Rome"})
    one = "".join((begin, " " if begin[-1].isalnum() else "", words, parameter, closing))
    for behind in ("", form.write([NEXT]).calls[0][0] + closing):
        text = lead + one + behind + tail
        for size in (len(text), *some([3], text, 3)):
            reply = play(text, "stop", size)
            assert [call.name for call in reply.failed_calls][:1] == ["get_time"], text
            assert delivered(reply) in ([], [NEXT] if behind else []), text


@for_each("form", TAGGED, ids=lambda form: f"{form.family}: {form.name}")
def test_words_alone_are_no_call(form: Form):
    lead, begin, _, closing, tail = parts_of(form, "get_time", {"zone": "Rome"})
    text = f"{lead}{begin} begins such a call. {closing}{tail}"
    for size in (1, len(text)):
        reply = play(text, "stop", size)
        assert (delivered(reply), reply.failed_calls, reply.text.strip()) == ([], (), text.strip())


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
@for_each("blank", BLANKS)
def test_a_blank_in_a_name(form: Form, blank: str):
    """White space around a name is none of it; what is no white space makes another name."""
    for name in (f"get_time{blank}", f"{blank}get_time"):
        text = form.write([(name, {"zone": "Rome"})]).text()
        for size in (len(text), *some([3], text, 3)):
            reply = play(text, "stop", size)
            meant = exact([("get_time", {"zone": "Rome"})]) if not blank.strip() else []
            assert reply.error or exact(delivered(reply)) in ([], meant), text
            assert reply.error or delivered(reply) or reply.text.strip() == text.strip()


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
@for_each("name", ALMOST)
def test_a_name_that_is_almost_offered(form: Form, name: str):
    """It is the name of a tool that was not offered, so that it stays text; and the next call has what is its own."""
    one = form.write([(name, {"zone": "Rome"})]).text()
    text = one + form.write([NEXT]).text()
    for size in (len(text), *some([3], text, 3)):
        alone = play(one, "stop", size)
        assert (delivered(alone), alone.failed_calls, alone.text.strip()) == ([], (), one.strip())
        reply = play(text, "stop", size)
        assert reply.error or delivered(reply) in ([], [NEXT]), text


@for_each(("begin", "end"), [("<user>", "</tool_call>"), ("<user>", "</user>"), ("<tool_call>", "</tool_call>")])
def test_a_slip_ends_where_its_family_ends(begin: str, end: str):
    """A parameter behind a call whose tool was not offered is none of it, whichever tag ends that."""
    parameter = "<arg_key>dry_run</arg_key><arg_value>true</arg_value>"
    call = "<tool_call>run_command<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>"
    for text in (f"{begin}nope{end} {parameter}{call}", f"{begin}nope{end}{parameter}{begin}nope{end}{call}"):
        for size in (len(text), *some((1, 7), text, 3)):
            reply = play(text, "stop", size)
            assert [failed.name for failed in reply.failed_calls] == ["run_command"], text
            assert delivered(reply) == []


@for_each("form", FORMS, ids=lambda form: f"{form.family}: {form.name}")
def test_a_word_anywhere_is_not_lost(form: Form):
    """It is an argument's, or shown, or the call fails."""
    text = form.write([("run_command", {"command": "ls", "dry_run": True})]).text()
    own = [found.span() for found in re.finditer(OWN_WORDS.get(form.family, "(?!)"), text)]
    for place in range(0, len(text) + 1, STEP):
        if not any(begin <= place <= end for begin, end in own):
            for word in (" zq9 ", "zq9"):
                written = f"{text[:place]}{word}{text[place:]}"
                reply = play(written, "stop", len(written))
                assert reply.error or "zq9" in reply.text or "zq9" in repr(delivered(reply)), written


@for_each(
    "text",
    [
        '<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>run_command\n```json\n{"command": "ls"}\n```<｜tool▁call▁end｜>',
        (
            '<｜tool_call_begin｜>function<｜tool_sep｜>get_time<steptml:invoke name="run_command">'
            '<steptml:parameter name="command">ls</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
        ),
        (
            '<|start|>assistant to=get_time<|message|><atem:function_calls>\n<atem:invoke name="run_command">\n'
            '<atem:parameter name="command">ls</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
        ),
    ],
)
def test_a_call_that_names_two_tools(text: str):
    for size in (1, len(text)):
        reply = play(text, "stop", size)
        assert delivered(reply) == [] and (reply.error or reply.text == text)
