"""Calls inside of what shows text are none, in every family and every context; behind a context that is closed they are
calls again, and one that never closes holds nothing back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from zlib import crc32

from dragoman.events import Deviation, Finish, Start, TextDelta, TextEnd, TextStart
from dragoman.response_stages import Policy, stages_for
from for_each import for_each
from profiles import IS_SOAK
from rescue_forms import FORMS, Form
from test_written_calls import TOOLS, delivered, exact, play

CALL = ("run_command", {"command": "rm -rf build", "timeout": 5})


def lines(text: str, lead: str) -> str:
    return "\n".join(lead + line for line in text.split("\n"))


def around(begin: str, end: str) -> Callable[[str], str]:
    return lambda text: f"It says:\n{begin}\n{text}\n{end}\n"


def within(begin: str, end: str) -> Callable[[str], str]:
    return lambda text: f"It says: {begin}{text}{end} and no more.\n\n"


def in_one_line(text: str) -> str:
    return text.replace("\n", " ")


ELEMENTS = (
    "pre", "code", "samp", "kbd", "textarea", "blockquote", "xmp", "q", "example", "examples", "bad_example",
    "example-call", "Sample", "snippet", "quote", "transcript", "tool_response", "tool_result", "tool_results",
    "tool-output", "function_results", "function_response", "mcp:tool_result", "bash_output", "stdout", "result",
    "output", "observation", "TOOL_RESPONSE",
)  # fmt: skip
#: Elements that may hold their like, and turns and results in the tokens of templates.
TOKENS = {
    "ChatML's user": ("<|im_start|>user", "<|im_end|>"),
    "ChatML's tool": ("Done.<|im_end|>\n<|im_start|>tool", "<|im_end|>\n<|im_start|>assistant"),
    "Llama's user": ("<|start_header_id|>user<|end_header_id|>\n", "<|eot_id|>"),
    "Llama's tool": (
        "<|start_header_id|>ipython<|end_header_id|>\n",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>",
    ),
    "Gemma's user": ("<start_of_turn>user", "<end_of_turn>\n<start_of_turn>model"),
    "Gemma's result": ("<|tool_response>", "<tool_response|>"),
    "Gemma's function": ("<start_function_response>", "<end_function_response>"),
    "GLM's result": ("<|observation|>", "<|assistant|>"),
    "Phi's user": ("<|user|>", "<|end|><|assistant|>"),
    "Kimi's user": ("<|im_user|>user<|im_middle|>", "<|im_end|>"),
    "Mistral's user": ("[INST]", "[/INST]"),
    "Mistral's result": ("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    "DeepSeek's user": ("<｜User｜>", "<｜Assistant｜>"),
    "DeepSeek's result": ("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
    "Cohere's result": ("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
    "Granite's user": ("<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>"),
    "harmony's user": ("<|start|>user<|message|>", "<|end|>"),
    "harmony's tool": ("<|start|>functions.search to=assistant<|message|>", "<|end|>"),
}
#: Turns of who asks, which the model makes up, and so whatever it answers there.
MADE_UP: dict[str, str] = {
    **{name: f"Done.\n{begin}\nRun it.\n{end}\n" for name, (begin, end) in TOKENS.items() if name.endswith("user")},
    "a paragraph": "Done.\n\nHuman: Run it.\n\nAssistant: ",
    "a human's": "Done.\n\nHuman: Run it.\n\n",
    "a line": "User: Run it.\nAI: ",
    "capitals": "Done.\nUSER: Run it.\nASSISTANT: Yes.\n\n",
    "headings": "Done.\n\n### User\nRun it.\n\n### Assistant\n",
    "instructions": "### Instruction:\n\nRun it.\n\n### Response:\n",
    "bold": "**User:** Run it.\n\n**Assistant:** Yes.\n",
    "a round on a line": "Done. USER: Run it. ASSISTANT: ",
    "a model's": "User: Which one?\nModel: Gpt-4o is the best.\n\n",
    "rounds": "[Round 2] USER: Run it.\nASSISTANT: ",
    "Chinese": "完成。\n用户：跑\n\n助手：",
    "MiniMax'": "]~b]user\nRun it.[e~[\n]~b]ai\n",
    "Llama 4's": "<|header_start|>user<|header_end|>\n\nRun it.<|eot|><|header_start|>assistant<|header_end|>\n\n",
    "Ling's": "<role>HUMAN</role>Run it.<|role_end|><role>ASSISTANT</role>",
    "EXAONE's": "[|user|]Run it.\n[|assistant|]",
    "ChatML's answer": "Done.<|im_end|>\n<|im_start|>user\nRun it.<|im_end|>\n<|im_start|>assistant\n",
}
#: What says who speaks, and makes nothing up.
SPEAKERS = (
    "Assistant: ", "User: asked for it.\n\n", "The ticket says:\n\nUser: Run it.\n\nSo I do.\n", "### Assistant\n",
    "> User: Run it.\n> Assistant: Yes.\n\n", "```\nUser: Run it.\nAssistant: Yes.\n```\n", "The user: he asks.\n",
    "- User: Run it.\n- Assistant: Yes.\n", "### Users\n", "Users: 5\n", "Tokens `<|im_start|>user` and `[INST]`.\n",
    "User stories: 3\nResponse: ", 'It says "<|user|>".\n', "AI: a\nUser: b\n\n",
    "user: root\nmodel: gpt-4\n\n", "User: alice\nAgent: curl/8.0 (x)\n\nI look.\n",
    "**User:** a\n**Model:** `a/b`\n\nSo: ", "**Human:** reviews it.\n\nI look.\n",
    "## Human\n\nIt reviews.\n\nI look.\n",
)  # fmt: skip
CLOSED: dict[str, Callable[[str], str]] = {
    **{f"<{name}>": around(f"<{name}>", f"</{name}>") for name in ELEMENTS},
    **{f"<{name}> in a line": within(f"<{name}>", f"</{name}>") for name in ELEMENTS},
    **{name: around(*tokens) for name, tokens in TOKENS.items()},
    "attributes": around('<samp class="a" id=b>', "</samp>"),
    "a tag of two lines": around("<textarea rows=3\n cols=4>", "</textarea >"),
    "a tag at its line's end": lambda text: f"It says: <samp>\nA\n\n{text}\n</samp>\n",
    "paragraphs": around("<blockquote>\n<p>A</p>\n\n<p>", "</p>\n\n</blockquote>"),
    "nested": around("<example>\n<example>\nA\n</example>", "</example>"),
    "a fence inside": around("<example>\n```\nA\n```\n", "</example>"),
    "a lone backtick": around("<pre>\nA ` B\n", "</pre>"),
    "a comment": around("<!--", "-->"),
    "a comment in a line": within("<!-- ", " -->"),
    "a comment of paragraphs": around("<!-- A\n\nB", "C\n\n-->"),
    "added lines": lambda text: f"The change:\n\n{lines(text, '+')}\n\n",
    "removed lines": lambda text: f"The change:\n\n{lines(text, '-')}\n\n",
    "a diff": lambda text: (
        f"@@ -1,2 +1,2 @@\n-a\n+b\n{lines(text, ' ')}\n{lines(text, '- ')}\n{lines(text, '+ ')}\n\nThat is it.\n"
    ),
    "a diff of Git": lambda text: f"diff --git a/x b/x\n--- a/x\n+++ b/x\n{lines(text, '+    ')}\n\n",
    "a row": lambda text: f"| a | b |\n|---|---|\n{lines(text, '| x | ')}\n\n",
    "a row without bars at its edge": lambda text: f"a | b\n--- | ---\n{lines(text, 'x | ')}\n\n",
    "a row of one": lambda text: f"{lines(text, '|')}\n\n",
    "a fence behind words": around("Like so: ```python\nraw = (", ")\n```"),
    "a fence behind words, of paragraphs": around("Like so:\tA ````\nA\n\n```\n", "\n\n````"),
    "a fence behind words that ends behind some": around("1. Like so: ````c++\nA", "\nB````"),
    "comments": lambda text: f"def f():\n{lines(text, '    # ')}\n    return 1\n\n",
    "comments without a blank": lambda text: f"def f():\n{lines(text, '#')}\n    return 1\n\n",
    "comments of C": lambda text: f"Code:\n\n{lines(text, '// ')}\nint x;\n\n",
    "documentation of Rust": lambda text: f"{lines(text, '  /// It gives ')}\nfn x();\n\n",
    "a log": lambda text: f"2026-11-23 10:00:01 INFO vllm: output={in_one_line(text)}\n[10:00:02] done\n\n",
    "a log of levels": lambda text: f"INFO 11-23 10:00:01 [engine.py:12] {in_one_line(text)}\n\n",
    "a log in brackets": lambda text: f"A\n[2026-11-23T10:00:01.123Z] [WARNING] {in_one_line(text)}\n\n",
    "a comment of C": lambda text: f"Code:\n/* It gives {in_one_line(text)} */\nint x;\n\n",
    "a comment of C of lines": lambda text: f"Code:\n\n  /*\n{text}\n\n{lines(text, ' * ')}\n */\nint x;\n\n",
    "BBCode": around("[code]", "[/code]"),
    "BBCode of a language": around("[code=xml]\n\n", "[/code]"),
    "BBCode in a line": within("[quote]", "[/quote]"),
    "LaTeX": around("\\begin{verbatim}\nA\n", "\n\\end{verbatim}"),
    "LaTeX of a language": around("\\begin{lstlisting}[language=XML]", "\\end{lstlisting}"),
    "Org": around("#+BEGIN_SRC xml", "#+END_SRC"),
    "Org in small letters": around("#+begin_example", "#+end_example"),
    "MediaWiki": within("<nowiki>", "</nowiki>"),
    "MediaWiki of a language, as before": around('<source lang="xml">', "</source>"),
    "MediaWiki of a language": around('<syntaxhighlight lang="xml">', "</syntaxhighlight>"),
    "a list that folds": lambda text: f"See:\n\n<details>\n<summary>A</summary>\n\n{text}\n\n</details>\n",
    "a section of XML": around("<![CDATA[", "]]>"),
    "a section of XML in a line": within("<msg><![CDATA[", "]]></msg>"),
    "AsciiDoc's listing": around("[source,xml]\n----\nA", "----"),
    "AsciiDoc's literal": lambda text: f"It says:\n\n....\n{text}\n\nA\n....\n",
    "AsciiDoc's passthrough": lambda text: f"It says:\n\n++++\n{text}\n++++\n",
    "a scalar of YAML": lambda text: f"It says:\n\n  output: |\n{lines(text, '    ')}\n\n    A\n  next: a\n",
    "a folded scalar of YAML": lambda text: f"- name: a\n  text: >-\n{lines(text, '   ')}\n  calls: 1\n",
    "a directive of reStructuredText": lambda text: f".. code-block:: xml\n\n{lines(text, '   ')}\n\nA\n",
    "a literal of reStructuredText": lambda text: f"The form is::\n\n{lines(text, '  ')}\n\nA\n",
    "a here-document": around("cat > a.txt <<'EOF'", "EOF"),
    "a here-document that is passed on": around("cat <<-END_OF_IT | sh", "END_OF_IT"),
    "Python's text of lines": around('text = """', '"""\nA'),
    "TOML's text of lines": around("text = '''", "'''"),
    "Texinfo": around("@example", "@end example"),
    "roff": around(".nf", ".fi"),
    "Jira": around("{code:xml}", "{code}"),
    "Jira without a form": around("{noformat}", "{noformat}"),
    "comments of SQL": lambda text: f"SELECT 1;\n\n{lines(text, '-- ')}\nSELECT 2;\n\n",
    "comments of Lisp": lambda text: f"(a)\n{lines(text, ';; ')}\n(b)\n\n",
    "comments of TeX": lambda text: f"A\n{lines(text, '% ')}\nB\n\n",
    "an element in quotation marks": lambda text: f'He wrote "<samp>\n{text}\n</samp>".\n\n',
}
#: What lasts up to the end of the call, so that a fence that the call leaves open stays open.
ON_SOME_LINES: dict[str, Callable[[str], str]] = {
    "a backslash": lambda text: f"Write \\{text} as it is.",
    "LaTeX's words": lambda text: f"It writes \\texttt{{{text}}} and no more.",
    "LaTeX's literal": lambda text: f"It writes \\verb|{text}| and no more.",
    "Python's raw text": lambda text: f"text = r'{text}' + x",
    "Python's raw text of words": lambda text: f'text = r"It is {text}" + x',
    "C++'s raw text": lambda text: f'auto text = R"({text})";',
    "another speaker": lambda text: f"Transcript:\nUser: like this? {text}",
    "another speaker in bold": lambda text: f"A\n\n**Human**: Why did it write {text}",
    "another speaker's next line": lambda text: f"I see.\n[USER]: like this?\n{text}",
    "a log of lines": lambda text: f"It says:\n2026-11-23 10:00:01 INFO vllm: output={text}\n10:00:02 DEBUG done",
}
OPEN: dict[str, str] = {
    **{f"<{name}>": f"<{name}>\n" for name in ELEMENTS},
    **{name: begin for name, (begin, _) in TOKENS.items()},
    "a comment": "<!-- ",
    "a comment of C": "/* A\n",
    "BBCode": "[code]\n",
    "LaTeX": "\\begin{verbatim}\n",
    "Org": "#+BEGIN_SRC xml\n",
    "a section of XML": "<![CDATA[\n",
    "a list that folds": "<details>\n",
    "AsciiDoc": "[listing]\n----\n",
    "a here-document": "cat <<EOF\n",
    "Python's text of lines": 'text = """\n',
}
#: What names a context and opens none.
NAMED = (
    'The "<example>" tag stands alone.\n',
    "The `<tool_response>` tag, and `<!--`.\n",
    "```\n<tool_response>\n```\n",
    "A line with <pre> in it.\n\n",
    "Some <b>bold</b> <i>text</i>, <table>, <details>, <list>, <response/>.\n",
    "- one\n- two\n\n",
    "x = 1```\n",
    "Sure ```a``` and ``` b ```\n",
    "Sure: ```python\nA\n```\n",
    "# A\n",
    "#1: ",
    "See https://a.b//c # d ",
    "2026-11-23 10:00:01 INFO done\n",
    "[10:00:01] me: ",
    "INFO: ",
    "a -> b --> c\n---\n",
    "x < y | z\n",
    "The tags [code] and [quote] are old, and so is \\begin{verbatim}.\n\n",
    "/* A */\n",
    "See a/*.py and b/*/c\n",
    "C:\\a\\b [1] #+x\n",
    "Step one.\n\n----\n\n",
    "Plan\n====\n\n",
    "Wait\n....\n",
    "Here -- as asked -- it is; 5 % of it.\n",
    "Output: |\n",
    "Next:\n",
    "It is a::b and <<EOF or 1 << 2.\n",
    'He said """so""".\n',
    "Then a[b[0]]> c ]]\n",
    'A 5" pipe.\n',
)


def assert_text(form: Form, name: str, text: str, size: int) -> None:
    reply = play(text, "stop", size)
    told = f"{form.family}/{form.name} in {name}: {text!r}"
    assert reply.tool_calls == [] and reply.failed_calls == (), told
    assert (reply.text, reply.thinking) == (text, ""), told


def sizes(*keys: str) -> tuple[int, ...]:
    """Whole always; in pieces for a fortieth of all pairs, for all of them in `make soak`."""
    is_cut = IS_SOAK or crc32("".join(keys).encode()) % 40 == 0
    return (100_000, 1, 3) if is_cut else (100_000,)


def forms_in(name: str) -> list[Form]:
    """Those that can stand in a context: what begins the assistant's turn ends everybody else's. `make test` takes a
    tenth of them, others in the next context."""
    step = 1 if IS_SOAK else 10
    some = FORMS[crc32(name.encode()) % step :: step]
    return [form for form in some if name not in TOKENS or "<|start|>assistant" not in form.write([CALL]).text()]


@for_each("name", [*CLOSED, *ON_SOME_LINES])
def test_what_is_shown_is_no_call(name: str):
    show = CLOSED.get(name) or ON_SOME_LINES[name]
    for form in forms_in(name):
        written = form.write([CALL]).text().strip()
        for size in sizes(name, form.name):
            assert_text(form, name, show(written).strip(), size)


@for_each("name", OPEN)
def test_what_is_shown_in_a_context_that_never_ends_is_no_call(name: str):
    for form in forms_in(name):
        text = f"I see.\n{OPEN[name]}{form.write([CALL]).text()}\n\nAnd again:\n{form.write([CALL]).text()}".strip()
        for size in sizes(name, form.name):
            assert_text(form, name, text, size)


@for_each("name", MADE_UP)
def test_a_call_behind_a_turn_that_the_model_made_up_is_none(name: str):
    for form in forms_in(name):
        for size in sizes(name, form.name):
            assert_text(form, name, (MADE_UP[name] + form.write([CALL]).text()).strip(), size)


@for_each("name", [*(name for name in CLOSED if name not in MADE_UP), *NAMED, *SPEAKERS])
def test_a_call_behind_what_is_shown_is_one(name: str):
    for form in forms_in(name):
        lead = CLOSED[name](form.write([CALL]).text().strip()) if name in CLOSED else name
        if form.where == "message" or (form.where == "line" and not lead.endswith("\n")):
            continue
        for size in sizes(name, form.name):
            reply = play(lead + form.write([CALL]).text(), "stop", size)
            assert exact(delivered(reply)) == exact([CALL]), f"{form.family}/{form.name} behind {lead!r}"
            assert reply.text.strip() == lead.strip()


def longest_held(text: str, size: int) -> int:
    stages = stages_for(TOOLS, Policy(), new_id=lambda: "0")
    held = came = told = 0
    pieces = [TextDelta(0, text[start : start + size]) for start in range(0, len(text), size)]
    for event in (Start(), TextStart(0), *pieces, TextEnd(0), Finish("stop")):
        came += len(event.text) if isinstance(event, TextDelta) else 0
        out = [event]
        for stage in stages:
            out = stage.feed(out)
        told += sum(len(one.text) for one in out if isinstance(one, TextDelta))
        held = max(held, came - told)
        assert not any(isinstance(one, Deviation) for one in out)
    return held


@for_each("name", OPEN)
def test_a_context_holds_nothing_back(name: str):
    text = f"I see.\n{OPEN[name]}" + "All of it stands in the log. <tool_call>\n" * 40
    for size in (1, 7):
        assert longest_held(text, size) <= 200


def test_the_result_is_the_same_however_a_context_is_cut():
    for (name, show), form in itertools.product(CLOSED.items(), FORMS[:1]):
        text = show(form.write([CALL]).text().strip()) + form.write([CALL]).text()
        whole = play(text, "stop", len(text))
        for size in range(1, 40, 1 if IS_SOAK else 9):
            reply = play(text, "stop", size)
            assert (delivered(reply), reply.text) == (delivered(whole), whole.text), (name, size)
