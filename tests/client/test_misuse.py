"""Every public function with every wrong kind of each argument: a `UsageError` that names it, and no request."""

from __future__ import annotations

import asyncio
import copy
import gc
import math
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import dragoman
from dragoman.errors import DragomanError
from dragoman.testing import FakeModel, Recording, call, cut, delay, deviation, error, thinking
from dragoman.types import ProtocolName


def find(city: str) -> str:
    """Find a city."""
    return city


class Odd:
    """Of no kind that anybody takes."""

    def __repr__(self) -> str:
        raise AssertionError("nobody may show what is not known")


HELLO = dragoman.Message.user("hello")
FIND = dragoman.Tool("find", "", {"type": "object", "properties": {}})
#: A value of every kind, by a name.
VALUES: dict[str, Any] = {
    "None": None, "True": True, "0": 0, "1": 1, "-5": -5, "1.5": 1.5, "nan": math.nan, "inf": math.inf, "1e300": 1e300,
    "''": "", "'auto'": "auto", "'hot'": "hot", "'lab/m'": "lab/m", "'nowhere/m'": "nowhere/m", "'find'": "find",
    "bytes": b"hello", "[]": [], "[None]": [None], "[5]": [5], "['a']": ["a"], "[b'a']": [b"a"], "[Odd]": [Odd()],
    "()": (), "{}": {}, "{'a': 1}": {"a": 1}, "{1: 2}": {1: 2}, "{'role': 'user'}": {"role": "user"},
    "[{'role': 'user'}]": [{"role": "user"}], "[{}]": [{}], "[{'content': 5}]": [{"role": "user", "content": 5}],
    "[{'role': 5}]": [{"role": 5, "content": "a"}], "set": {"a"}, "Path": Path("nowhere.png"), "Odd": Odd(),
    "[[]]": [[]], "lambda": lambda: 5, "find": find, "[find]": [find], "type": int, "class": Odd, "Message": HELLO,
    "[Message]": [HELLO], "Message of a string": dragoman.Message("user", "hello"),  # type: ignore[arg-type]
    "Message of nothing": dragoman.Message("user", ()), "Message of 5": dragoman.Message("user", 5),  # type: ignore[arg-type]
    "Message of no role": dragoman.Message("boss", (dragoman.Text("hello"),)),  # type: ignore[arg-type]
    "Tool": FIND, "[Tool]": [FIND], "[Tool of a list]": [dragoman.Tool("t", "", [])], "[Tool of 5]": [dragoman.Tool(5)],  # type: ignore[arg-type]
    "Named": dragoman.Named("find"), "Params": dragoman.Params(max_tokens=5),
    "Params('hot')": dragoman.Params(temperature="hot"), "Params(nan)": dragoman.Params(temperature=math.nan),  # type: ignore[arg-type]
    "Params(schema)": dragoman.Params(response_schema=5),  # type: ignore[arg-type]
    "{'max_tokens': 'a'}": {"max_tokens": "a"}, "{'max_token': 5}": {"max_token": 5}, "generator": (one for one in ()),
    "{'lab': 5}": {"lab": 5}, "{'lab': {}}": {"lab": {}}, "{'lab': {'base_url': 5}}": {"lab": {"base_url": 5}},
    "surrogate": "\ud800", "no path": "a\0.png", "long": "a" * 5_000, "10**30": 10**30,
    "10**5000": 10**5000, "complex": 1j,
    "exception": ValueError("a"),
}  # fmt: skip

_TEXT = {"''", "'auto'", "'hot'", "'lab/m'", "'nowhere/m'", "'find'", "surrogate", "no path", "long"}
#: By argument, the values that are right for it.
RIGHT: dict[str, set[str]] = {
    "target": _TEXT - {"''"} | {"['a']"},
    "messages": (_TEXT - {"''"}) | {"['a']", "Message", "[Message]", "Message of a string"},
    "system": _TEXT | {"None"},
    "tools": {"[]", "()", "[find]", "[Tool]", "generator"},
    "tool_choice": {"'auto'", "'find'", "Named"},
    "output_type": {"None", "type"},
    "output_retries": {"0", "1"},
    "max_tokens": {"None", "1"},
    "temperature": {"None", "0", "1", "1.5"},
    "top_p": {"None", "0", "1"},
    "stop": (_TEXT - {"''"}) | {"None", "['a']", "[]", "()"},
    "seed": {"None", "0", "1", "-5"},
    "reasoning": {"None", "True", "0", "1"},
    "cache": {"None"},
    "timeout": {"None", "1", "1.5"},
    "session_id": _TEXT | {"None"},
    "params": {"None", "{}", "Params"},
    "max_steps": {"1"},
    "approve": {"None"},
    "on_tool_error": set(),
    "mcp": {"None", "{}"},
    "texts": (_TEXT - {"''"}) | {"['a']"},
    "dimensions": {"None", "1"},
    "provider": {"None"},
}
_COMMON = [
    "target", "messages", "system", "tools", "tool_choice", "output_type", "output_retries", "max_tokens",
    "temperature", "top_p", "stop", "seed", "reasoning", "cache", "timeout", "session_id", "params",
]  # fmt: skip
_RUN = [*_COMMON, "max_steps", "approve", "on_tool_error", "mcp"]
METHODS = {
    "reply": _COMMON,
    "stream": _COMMON,
    "run": _RUN,
    "run_stream": _RUN,
    "embed": ["target", "texts", "dimensions", "timeout"],
}
#: Tools that a run cannot call.
_UNRUN = {"[Tool]"}
#: Right for a type checker's eye alone: a callable may be asked, and answer wrongly, so these are not tried further.
_CALLABLE = {"lambda", "find", "type", "class"}


def arguments_for(method: str, name: str, value: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"target": "lab/m"} | (
        {"texts": ["a"]} if method == "embed" else {"messages": "hello", "tools": [find]}
    )
    if name == "tools":
        given["tool_choice"] = "auto"
    return given | {name: value}


def cases() -> Iterator[tuple[str, str, str]]:
    for method, names in METHODS.items():
        for name in names:
            for label in VALUES:
                if not (name == "approve" and label in _CALLABLE):
                    yield method, name, label


def answered(request: dragoman.Request) -> Any:
    return "5" if request.params.response_schema is None else '{"answer": 5}'


def check(method: str, name: str, label: str, ask: Callable[[dict[str, Any]], Any], fake: FakeModel) -> str:
    """What is wrong with the answer to one misuse; "" is nothing."""
    value = VALUES[label] if label != "generator" else iter(())
    right = RIGHT[name] - _UNRUN if method.startswith("run") else RIGHT[name]
    before = len(fake.requests)
    try:
        ask(arguments_for(method, name, value))
    except dragoman.UsageError as problem:
        if label in right:
            return f"{method}({name}={label}) was refused: {problem}"
        if len(fake.requests) != before:
            return f"{method}({name}={label}) was sent first"
        if not any(word in str(problem) for word in (name, "messages[", "tools[", "tool ", "output_type")):
            return f"{method}({name}={label}) does not name the argument: {problem}"
        return ""
    except Exception as problem:
        return f"{method}({name}={label}): {type(problem).__name__}: {problem}"
    if label not in right:
        return f"{method}({name}={label}) was taken"
    return ""


@pytest.fixture
def fake() -> Iterator[FakeModel]:
    with FakeModel(*[answered] * 20_000) as fake:
        yield fake


def test_every_wrong_argument_is_refused_at_once(fake: FakeModel) -> None:
    problems = []
    tried = 0
    with dragoman.Client(providers={"lab": {"base_url": "http://127.0.0.1:1", "protocol": "openai-chat"}}) as client:

        def ask(method: str) -> Callable[[dict[str, Any]], Any]:
            def run(arguments: dict[str, Any]) -> Any:
                found = getattr(client, method)(**arguments)
                return list(found) if method in ("stream", "run_stream") else found

            return run

        for method, name, label in cases():
            tried += 1
            problems.append(check(method, name, label, ask(method), fake))
    assert [problem for problem in problems if problem] == []
    assert tried >= 2_000


def test_the_asynchronous_client_and_the_functions_refuse_the_same(fake: FakeModel) -> None:
    """One wrong value of each argument: they read arguments by the same functions."""
    problems = []
    wrong = {name: next(label for label in ("Odd", "bytes") if label not in RIGHT[name]) for name in RIGHT}

    async def main() -> None:
        async with dragoman.AsyncClient() as client:
            for method, names in METHODS.items():
                for name in names:
                    try:
                        found = getattr(client, method)(**arguments_for(method, name, VALUES[wrong[name]]))
                        if method not in ("stream", "run_stream"):
                            await found
                        problems.append(f"{method}({name})")
                    except dragoman.UsageError:
                        pass

    asyncio.run(main())
    for method, names in METHODS.items():
        for name in names:
            with pytest.raises(dragoman.UsageError):
                getattr(dragoman, method)(**arguments_for(method, name, VALUES[wrong[name]]))
    assert problems == [] and fake.requests == []


CONSTRUCTOR: dict[str, set[str]] = {
    "config": {"None", "{}"},
    "base_url": {"None"},
    "api_key": {"None"},
    "protocol": {"None"},
    "providers": {"None", "{}"},
    "routes": {"None", "{}"},
    "strict": {"None", "True"},
    "tools": {"None", "'auto'"},
    "retries": {"None", "0", "1"},
    "on_deviation": {"None", *_CALLABLE},
}


@pytest.mark.parametrize("kind", [dragoman.Client, dragoman.AsyncClient])
def test_a_client_refuses_what_it_cannot_use(kind: Any) -> None:
    problems = []
    for name, right in CONSTRUCTOR.items():
        for label, value in VALUES.items():
            try:
                made = kind(**{name: value})
                if isinstance(made, dragoman.Client):
                    made.close()
                if label not in right:
                    problems.append(f"{name}={label} was taken")
            except DragomanError as problem:
                if label in right:
                    problems.append(f"{name}={label}: {problem}")
            except Exception as problem:
                problems.append(f"{name}={label}: {type(problem).__name__}: {problem}")
    assert problems == []


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Message.user": dragoman.Message.user,
    "Message.system": dragoman.Message.system,
    "Message.assistant": dragoman.Message.assistant,
    "decode body": lambda value: dragoman.decode(value, "openai-chat"),
    "decode protocol": lambda value: dragoman.decode(b"{}", value),
    "decode tools": lambda value: dragoman.decode(b"{}", "openai-chat", tools=value),
    "decode request": lambda value: dragoman.decode(b"{}", "openai-chat", request=value),
    "decode status": lambda value: dragoman.decode(b"{}", "openai-chat", status=value),
    "FakeModel": FakeModel,
    "FakeModel protocol": lambda value: FakeModel("a", protocol=value),
    "FakeModel.serve": lambda value: FakeModel("a").serve(value).close(),
    "call": call,
    "call value": lambda value: call("find", value=value),
    "cut": cut,
    "delay": delay,
    "deviation": deviation,
    "error": error,
    "error message": lambda value: error(500, value),
    "thinking": thinking,
    "Media.of": dragoman.Media.of,
    "Message.tool": lambda value: dragoman.Message.tool(dragoman.ToolCall("a", "b", "{}"), value),
    "fold": lambda value: dragoman.fold([value]),
    "fold of a part": lambda value: dragoman.fold([dragoman.TextDelta(0, "a")]),
    "Recording": lambda value: Recording(value, "replay"),
    "Recording mode": lambda value: Recording("nowhere", value),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_raises_anything_but_its_own(name: str) -> None:
    problems = []
    refused = 0
    for label, value in VALUES.items():
        try:
            FUNCTIONS[name](value)
        except dragoman.UsageError:
            refused += 1
        except Exception as problem:
            problems.append(f"{name}({label}): {type(problem).__name__}: {problem}")
    assert problems == [] and refused > 5


def test_a_stream_is_read_once(fake: FakeModel) -> None:
    stream = dragoman.stream("lab/m", "hello")
    assert [type(event).__name__ for event in stream][-1] == "Finish"
    for again in (lambda: list(stream), lambda: list(stream.text_stream)):
        with pytest.raises(dragoman.UsageError, match="read once"):
            again()
    run = dragoman.run_stream("lab/m", "hello")
    with pytest.raises(dragoman.UsageError, match="not over"):
        _ = run.answer
    list(run)
    with pytest.raises(dragoman.UsageError, match="read once"):
        list(run)
    for wrong in ("a", True, dragoman.TextDelta(0, "a"), None):
        with pytest.raises(dragoman.UsageError, match="partial: expected an event"):
            stream.partial(wrong)  # type: ignore[arg-type]


def test_half_a_character_in_a_name_breaks_no_protocol() -> None:
    for protocol in get_args(ProtocolName):
        with FakeModel("yes", protocol=protocol):
            assert str(dragoman.reply("lab/m", "hello", session_id="a\ud800")) == "yes"


def test_a_closed_client_and_a_closed_stream_say_so() -> None:
    """Both gave nothing, without a word, or opened connections that nobody closed."""

    async def use(method: str) -> None:
        client = dragoman.AsyncClient()
        await client.close()
        await client.close()
        await getattr(client, method)("lab/m", "hello") if method != "models" else await client.models()

    with FakeModel("yes") as fake:
        for method in ("reply", "run", "embed", "models"):
            with pytest.raises(dragoman.UsageError, match="this AsyncClient is closed"):
                asyncio.run(use(method))
        for read in (list, lambda stream: list(stream.text_stream)):
            with dragoman.stream("lab/m", "hello") as stream:
                pass
            with pytest.raises(dragoman.UsageError, match="this stream is closed, and nothing of it was read"):
                read(stream)
    assert fake.requests == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the first loop leaves a connection
def test_a_client_outlives_an_event_loop_but_is_not_used_by_two() -> None:
    """Programs call `asyncio.run` more than once. A kept connection of the loop before belongs to nobody."""

    async def twice(client: dragoman.AsyncClient) -> None:
        def elsewhere() -> str:
            with pytest.raises(dragoman.UsageError, match="one event loop at a time") as told:
                asyncio.run(client.reply("m", "hello"))
            return str(told.value)

        await client.reply("m", "hello")
        await asyncio.to_thread(elsewhere)

    with FakeModel(*["yes"] * 3).serve() as served:
        client = dragoman.AsyncClient(base_url=f"{served.url}/v1", retries=0)
        assert [str(asyncio.run(client.reply("m", "hello"))) for _ in range(2)] == ["yes", "yes"]
        asyncio.run(twice(client))
        asyncio.run(client.close())
        gc.collect()


def test_what_a_tool_returns_reaches_the_model_as_it_is() -> None:
    """A picture went out as the text of our own value or as base64, and NaN as null; an endless list broke the run."""
    endless: list[Any] = []
    endless.append(endless)
    picture = dragoman.Media("image", "image/png", "aGk=")
    seen_by_model: dict[str, tuple[Any, Any]] = {
        "picture": (picture, (picture,)),
        "both": (["a cat", picture], (dragoman.Text("a cat"), picture)),
        "texts": (["a", "b"], (dragoman.Text('["a","b"]'),)),
        "result": (dragoman.ToolResult("mine", "", (dragoman.Text("a"),)), (dragoman.Text("a"),)),
        "mixed": ([{"a": 1}, picture], (dragoman.Text('{"a":1}'), picture)),
        "nan": ({"a": math.nan}, (dragoman.Text('{"a":"NaN"}'),)),
        "endless": (endless, "the tool returned a list: it holds itself, or has too many levels"),
        "huge": (10**5000, "digits"),
        "bytes": (b"PNG", "the tool returned bytes: no model reads them; return a string, or dragoman.Media("),
        "view": (memoryview(b"PNG"), "the tool returned a memoryview"),
        "unread": ([map(str, [1])], "the tool returned a list with a map in it: nobody has read its values; return a"),
    }
    for value, expected in seen_by_model.values():

        def look(value: Any = value) -> Any:
            return value

        with FakeModel(call("look", {}), "done"):
            answer = dragoman.run("lab/m", "hello", tools=[dragoman_tool(look)])
        (result,) = answer.messages[2].parts
        assert isinstance(result, dragoman.ToolResult) and result.call_id == answer.messages[1].tool_calls[0].id
        told = isinstance(expected, str)
        assert (result.is_error and expected in result.text) if told else result.parts == expected


def dragoman_tool(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the same name without parameters."""

    def look() -> Any:
        """Look."""
        return function()

    return look


def test_a_misuse_within_a_tool_is_its_own() -> None:
    def ask(city: str) -> str:
        """Ask."""
        raise dragoman.UsageError(f"mine: {city}")

    with FakeModel(call("ask", city="Rome")), pytest.raises(dragoman.UsageError, match="mine: Rome"):
        dragoman.run("lab/m", "hello", tools=[ask], on_tool_error="raise")
    with FakeModel(call("ask", town="Rome"), "I see."):
        assert str(dragoman.run("lab/m", "hello", tools=[ask], on_tool_error="raise")) == "I see."


class Thing:
    def find(self, city: str) -> str:
        """Find."""
        return city


def test_a_function_within_another_may_call_its_argument_as_methods_do() -> None:
    def find(self: str) -> str:
        """Find."""
        return self

    with FakeModel(call("find", self="Rome"), "Found."):
        assert str(dragoman.run("lab/m", "hello", tools=[find])) == "Found."


@pytest.mark.parametrize("tool", [int, dict, max, Thing.find, len])
def test_what_has_no_parameters_to_offer_is_no_tool(tool: Any) -> None:
    with pytest.raises(dragoman.UsageError, match=f"tool {tool.__name__}: "):
        dragoman.reply("lab/m", "hello", tools=[tool])


def test_a_stream_that_nobody_read_says_nothing_of_its_failure() -> None:
    with dragoman.Client(base_url="http://127.0.0.1:9", protocol="openai-chat") as client:
        stream = client.stream("x", "hi")
        with pytest.raises(dragoman.UsageError, match="raise_for_failure: nothing of this stream was read"):
            stream.raise_for_failure()


@pytest.mark.parametrize(
    "turn", [error(429, "Slow down.", retry_after=5), cut("The"), "no JSON", call("find", city="Rome")]
)
def test_an_exception_is_copied_and_leaves_a_process_whole(turn: Any) -> None:
    asked: Any = {"output_type": list[int], "output_retries": 0} if isinstance(turn, str) else {"tools": [find]}
    with FakeModel(turn), dragoman.Client(retries=0) as client, pytest.raises(DragomanError) as caught:
        client.run("lab/m", "hello", max_steps=1, **asked)
    raised = caught.value
    raised.add_note("seen by nobody")
    for copied in (pickle.loads(pickle.dumps(raised)), copy.copy(raised), copy.deepcopy(raised)):
        assert (type(copied), str(copied), vars(copied)) == (type(raised), str(raised), vars(raised))


def test_an_image_that_no_target_takes_is_a_usage_error_like_any_other(fake: FakeModel) -> None:
    picture = dragoman.Message.user("hello", dragoman.Media("image", url="https://images.example/a.png?key=secret"))
    ways: list[Callable[[], Any]] = [
        lambda: dragoman.reply("ollama/m", picture),
        lambda: dragoman.run("ollama/m", picture),
        lambda: list(dragoman.stream("ollama/m", picture)),
        lambda: list(dragoman.run_stream("ollama/m", picture)),
        lambda: asyncio.run(dragoman.AsyncClient().reply("ollama/m", picture)),
    ]
    for way in ways:
        with pytest.raises(dragoman.UsageError, match=r"got one by its address at host 'images\.example'"):
            way()
    assert fake.requests == []


def test_a_client_is_shared_and_not_copied(fake: FakeModel) -> None:
    """The first copy that was dropped closed the client."""
    with dragoman.Client() as client:
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(dragoman.UsageError, match="cannot be copied or pickled: share it"):
                way(client)
        gc.collect()
        assert client.reply("lab/m", "hello").text
