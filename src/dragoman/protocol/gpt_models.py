"""What reasoning models named GPT or o take of efforts, sampling and tools, by their version.

Spec: https://developers.openai.com/api/docs/guides/latest-model and …/guides/reasoning, and the vendor's error messages
where the pages are silent (read 2026-11-26). The vendor refuses a whole request for one setting that its model does not
take. A model of another name takes everything.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias, get_args

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.events import Deviation
from dragoman.types import Effort

Version: TypeAlias = tuple[int, int]

_GPT: Final = re.compile(r"(?:^|/)gpt-([3-9])o?(?:\.([0-9]{1,2}))?(?![0-9.])")
#: Of the o series, those that take stop words.
_STOPS: Final = re.compile(r"(?:^|/)o(?:1|3-mini)(?![0-9A-Za-z])")
_O: Final = re.compile(r"(?:^|/)o[1-9](?![0-9A-Za-z])")
#: The version that stands for models of the o series, and the first of the others that thinks.
_OLD: Final = (1, 0)
_THINKING: Final = (5, 0)
#: Where a request has what only a thinking model has.
_SEALED: Final = "reasoning.encrypted_content"
_ODDS: Final = "message.output_text.logprobs"
_ORDER: Final[tuple[Effort, ...]] = get_args(Effort)
#: The first versions that think only when they are asked to; that think unasked again; that take no function beside
#: thinking in a chat; and that take it as far as `max`, but for chats.
_QUIET: Final = (5, 1)
_UNASKED: Final = (5, 5)
_APART: Final = (5, 4)
_LARGEST: Final = (5, 6)
_EXTRA: Final = (5, 2)
#: In the names of models that think in one way only. The first of them, GPT-5's, does not think at all.
_CHAT: Final = "-chat"
_FIXED: Final = (_CHAT, "-deep-research")
#: In the name of a model that thinks always, of those that can be told not to.
_ALWAYS_THINKS: Final = "gpt-6-astra"
#: Settings that are refused beside thinking, and the value that says nothing.
_SAMPLING: Final = {
    "temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "stop": None, "logprobs": False,
    "top_logprobs": None, "logit_bias": None,
}  # fmt: skip
_NATIVE: Final = frozenset({"logprobs", "top_logprobs", "logit_bias"})


def version_of(model: str) -> Version | None:
    """Return the version in a model's name; None for any other."""
    if (found := _GPT.search(model)) is not None:
        return int(found[1]), int(found[2] or 0)
    return _OLD if _O.search(model) is not None else None


def efforts_of(model: str, version: Version) -> tuple[Effort, ...]:
    """Return the efforts that a model takes."""
    if any(word in model for word in _FIXED):
        return ("medium",)
    usual: tuple[Effort, ...] = ("low", "medium", "high")
    if version == _OLD:
        return usual
    largest: tuple[Effort, ...] = ("xhigh",) if version >= _EXTRA or "codex-max" in model else ()
    if "-pro" in model:
        return ("high",) if version < _EXTRA else ("medium", "high", *largest)
    if "codex" in model:
        return (*usual, *largest)
    if version < _QUIET:
        return ("minimal", *usual)
    least: tuple[Effort, ...] = () if _ALWAYS_THINKS in model else ("none",)
    return (*least, *usual, *largest, *(("max",) if version >= _LARGEST else ()))


def nearest(effort: Effort, efforts: tuple[Effort, ...]) -> Effort:
    """Return the effort that is nearest to another; never none in place of some."""
    place = _ORDER.index(effort)
    others = [each for each in efforts if each != "none"] if effort != "none" else list(efforts)
    return effort if effort in efforts else min(others, key=lambda each: abs(_ORDER.index(each) - place))


def fit(body: dict[str, Json], model: str) -> list[Deviation]:
    """Change a request's body, in either of the vendor's protocols, to what its model takes. Return what is said."""
    version = version_of(model)
    if version is None:
        return []
    if _OLD < version < _THINKING or (version == _THINKING and _CHAT in model):
        return _without_thinking(body)
    said: list[Deviation] = []
    inner = body.get("reasoning")
    holder, key = (inner, "effort") if isinstance(inner, dict) else (body, "reasoning_effort")
    asked = effort = holder.get(key)
    is_chat = "messages" in body
    efforts = tuple(each for each in efforts_of(model, version) if each != "max" or not is_chat)
    if isinstance(asked, str) and asked in _ORDER:
        effort = nearest(asked, efforts)
    is_apart = is_chat and version >= _APART and bool(body.get("tools")) and "none" in efforts
    if is_apart and (effort is not None or version >= _UNASKED):
        effort = "none"
    if effort != asked:
        why = (
            f"this model takes no {asked}" if effort != "none" else "beside tools, this model thinks in Responses alone"
        )
        said.append(Deviation("changed", "params.reasoning.effort", f"{effort}: {why}"))
        holder[key] = effort
    is_quiet = effort == "none" or (effort is None and version < _UNASKED and "none" in efforts)
    takes_stops = effort == "none" or _STOPS.search(model) is not None  # some take none, also if they do not think
    for name in [name for name in _SAMPLING if name in body]:
        if takes_stops if name == "stop" else is_quiet:
            continue
        if body[name] != _SAMPLING[name]:
            where = name if name in _NATIVE else f"params.{name}"
            said.append(Deviation("dropped", where, "this model samples in its own way while it thinks"))
        del body[name]
    if not is_quiet and _exclude(body, _ODDS):
        said.append(Deviation("dropped", f"include.{_ODDS}", "this model samples in its own way while it thinks"))
    if version == _OLD and body.pop("parallel_tool_calls", None) is not None:
        said.append(Deviation("dropped", "params.parallel_tools", "not known to this model"))
    return said


def _without_thinking(body: dict[str, Json]) -> list[Deviation]:
    """Remove what asks a model for thinking that has none."""
    asked = [body.pop(name) for name in ("reasoning_effort", "reasoning") if name in body]
    _exclude(body, _SEALED)
    is_none = all(each in ("none", {"effort": "none"}) for each in asked)
    return [] if is_none else [Deviation("dropped", "params.reasoning", "this model does not think")]


def _exclude(body: dict[str, Json], name: str) -> bool:
    """Remove a name from what the answer shall include. Return whether it was there."""
    included = body.get("include")
    if isinstance(included, Raw):  # a client's own
        included = _json.decode(bytes(included))
    if not isinstance(included, list) or name not in included:
        return False
    body["include"] = [each for each in included if each != name]
    if not body["include"]:
        del body["include"]
    return True
