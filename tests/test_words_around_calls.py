"""What models write around calls (`words_around_calls.py`), beside a call of every form: words are words, the rest of
arguments fails, and a call that says too much of what is no argument is read."""

from __future__ import annotations

from zlib import crc32

from for_each import for_each
from profiles import some
from rescue_forms import FORMS, Form
from test_joined_calls import outcome
from test_written_calls import delivered, exact, play
from words_around_calls import ABOUT, BEHIND, GOES_ON, IN_LINE

CALL = ("run_command", {"command": "ls src"})
NEXT = ("get_time", {"zone": "Rome"})
LIVE = [form for form in FORMS if form.where != "message"]
IDS = [f"{form.family}: {form.name}" for form in LIVE]
#: Of Python a call's line may go on as an expression, and a slash divides.
EXPRESSIONS = (" (the list of files)", " // list", " -> app.py", " **Done**", " (…)")


def texts(form: Form) -> list[str]:
    """A call, whole, and without what closes it behind its own brackets."""
    written = form.write([CALL])
    found = [written.text().rstrip("\n; ")]
    body = written.lead + written.calls[0][0]
    is_open = "```" in body or (form.name == "Python" and form.family != "olmo")
    return found if form.closes == "tag" or is_open else [*found, body]


def assert_read(text: str, words: str) -> None:
    reply = play(text, "stop", len(text))
    assert exact(delivered(reply)) == exact([CALL]) and reply.error is None, f"{text!r}: {outcome(reply)}"
    assert reply.text.strip(" \n,;") == words.strip(" \n,;"), text
    if crc32(text.encode()) % 10 == 0:
        assert outcome(play(text, "stop", 5)) == outcome(reply), text


@for_each("form", LIVE, ids=IDS)
def test_words_behind_a_call_are_none_of_it(form: Form):
    for text in texts(form):
        for words in some(BEHIND, text, 4):
            if text[-1] != ")" or "});" not in words:  # a bracket of Python's that nothing opened
                assert_read(f"{text}\n{words}", words)


@for_each("form", LIVE, ids=IDS)
def test_words_in_the_line_of_a_call_are_none_of_it(form: Form):
    for text in texts(form):
        for words in some(IN_LINE, text, 4):
            if words not in EXPRESSIONS or form.family != "olmo":
                assert_read(f"{text}{words}", words)


@for_each("form", [form for form in LIVE if form.closes == "body"], ids=lambda form: form.family)
def test_what_may_be_the_rest_of_its_arguments_is_no_word(form: Form):
    written = form.write([CALL])
    body = written.lead + written.calls[0][0]
    for words in GOES_ON if body[-1] == "}" else ():
        for joint in ("", " ", "\n"):
            reply = play(body + joint + words, "stop", 1000)
            assert not delivered(reply) or reply.error is not None, body + joint + words


@for_each("form", [form for form in FORMS if form.closes == "body"], ids=lambda form: form.family)
@for_each("brace", ["}", "\n}"])
def test_one_brace_too_many_takes_nothing_from_a_call(form: Form, brace: str):
    """It stands behind all that the call closes; an object that ends before the last argument does has two readings."""
    for calls in (
        [CALL],
        [CALL, NEXT][: form.most],
        [("write_file", {"path": "a", "options": {"a": 1}, "content": "x"})],
    ):
        (body, closing), *more = (written := form.write(calls)).calls
        if body[-1] != "}" or form.family in ("gemma-bare", "calling-tool"):
            return
        text = written.lead + body + brace + closing + "".join(map("".join, more)) + written.tail
        reply = play(text, "stop", len(text))
        assert exact(delivered(reply)) == (exact(calls) if calls[0] == CALL else []), text
        assert outcome(play(text, "stop", 1)) == outcome(reply), text
        rest = play(f'{written.lead}{body}{brace}, "timeout": 5}}', "stop", 1000)
        assert not delivered(rest) or rest.error is not None


#: What stands in place of arguments where somebody shows how a call is written.
PLACES = (
    "{...}", "{ … }", "{args}", "{arguments as JSON}", "{{ args }}", "{{ call.arguments | tojson }}", "<json>",
    "<JSON object>", "<arguments>", '{"zone": ...}', '{"zone": …}', '{"zone": <zone>}', '{zone: <the zone>}',
    '{\n  "zone": ...\n}',
)  # fmt: skip
OBJECT = '{"zone": "Rome"}'
JSON = [form for form in LIVE if OBJECT in form.write([NEXT]).text()]


def assert_text(text: str) -> None:
    for size in (len(text), *some((1, 5), text, 3)):
        reply = play(text, "stop", size)
        assert (delivered(reply), reply.failed_calls, reply.error) == ([], (), None), text
        assert reply.text == text


@for_each("form", JSON, ids=lambda form: f"{form.family}: {form.name}")
def test_a_place_for_arguments_makes_no_call(form: Form):
    for place in PLACES:
        if form.family in ("kimi-k3", "mcp-tags") and place[0] == "<":
            continue  # it stands behind an attribute, or in an element
        text = form.write([NEXT]).text().rstrip().replace(OBJECT, place)
        assert_text(f"So:\n{text}")


@for_each("text", ABOUT)
def test_a_text_about_a_call_is_none(text: str):
    assert_text(text.replace("NAME", NEXT[0]))
    assert_text(f"So:\n{text.replace('NAME', NEXT[0])}\nThat is it.")


#: Words that end with a brace, as keys and values are written.
BRACED = (
    '\nNote: "x" }', "\nThat is {a}", ' so "b": 1}', "\nIt ends with }", " and more}", '\n"Note": "this" }',
    "\nx = {1: 2}}", '\nfoo: "bar"}', "\n// c\n}", '\n"a"}', "\n# note\n}", "\nNote: 5}", "\nnote: true }",
)  # fmt: skip


@for_each("form", [form for form in FORMS if form.closes == "body"], ids=lambda form: form.family)
def test_words_do_not_become_arguments_where_the_own_brace_is_missing(form: Form):
    for call in (
        CALL,
        ("run_command", {"command": "ls", "timeout": 5}),
        ("write_file", {"path": "a", "content": "x", "options": {"a": 1}}),
    ):
        (body, closing), *_ = (written := form.write([call])).calls
        for words in some(BRACED, body, 1) if body[-1] in ")}" else ():
            for behind in (words, words + closing + written.tail, closing + written.tail + words):
                text = written.lead + body[:-1] + behind
                reply = play(text, "stop", len(text))
                assert reply.error or exact(delivered(reply)) in ([], exact([call])), text
