"""A tool may have a name that is a word of a family's own markup."""

from __future__ import annotations

import re

from dragoman import _json
from dragoman.types import Tool
from for_each import for_each
from profiles import some
from rescue_forms import FORMS, Calls, Form
from test_written_calls import SCHEMAS, TOOLS, delivered, play_with

SCHEMA = _json.raw({"type": "object", "properties": SCHEMAS["run_command"][0], "required": ["command"]})
WORDS = ("function", "tool", "call", "json", "arguments", "parameters", "name")
ARGUMENTS = {"command": "git status"}


@for_each("form", FORMS, ids=str)
def test_a_word_of_the_markup_is_a_name_too(form: Form):
    own = re.findall(r"[A-Za-z_]{3,}", form.write([("", ARGUMENTS)]).text())
    for word in some({*WORDS, *own} - {"git", "status", "command", "print"}, str(form), 1):  # what prints is code
        first: Calls = [("get_time", {"zone": "Oslo"})]
        calls = [*first[: form.most - 1], (word, ARGUMENTS)]
        text = form.write(calls).text()
        reply = play_with((Tool(word, "", SCHEMA), *TOOLS), text, "stop", len(text))
        assert (delivered(reply), reply.text.strip()) == (calls, ""), text
