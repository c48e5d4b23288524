"""The tags that models put around their thinking, in pairs. `tags.py` names the sources."""

from __future__ import annotations

from typing import Final, final

import msgspec


@final
class Pair(msgspec.Struct, frozen=True):
    """Tags around thinking. `stops` end it too, and are read again as what follows it."""

    openers: tuple[str, ...]
    closers: tuple[str, ...]
    stops: tuple[str, ...] = ()


#: Muse Glimmer's headers of a text for the user. Its calls have another: what looks like one in such a text is shown.
TO_USER: Final = ("to=user<|message|>", "<|start|>assistant to=user<|message|>")
#: Thinking without a word, which Gemma 4 writes behind its answer too, and its closing tag.
EMPTY: Final = {"<|channel>thought\n<channel|>": "<channel|>"}
PAIRS: Final = (
    Pair(("<think>",), ("</think>",)),
    Pair(("<thinking>",), ("</thinking>",)),
    Pair(("<thought>",), ("</thought>",)),
    Pair(("<seed:think>",), ("</seed:think>",)),
    Pair(("[THINK]",), ("[/THINK]",)),
    Pair(("<|START_THINKING|>",), ("<|END_THINKING|>",)),
    Pair(("<|channel>thought", "<|channel>"), ("<channel|>", *EMPTY)),
    Pair(("<mm:think>",), ("</mm:think>",)),
    Pair(("<|inner_prefix|>",), ("<|inner_suffix|>",)),
    Pair(("<|open|>think<|sep|>",), ("<|close|>think<|sep|>",)),
    *(Pair((f"<ifm|{word}>",), (f"</ifm|{word}>",)) for word in ("think", "think_fast", "think_faster")),
    Pair(("<think:opensource>",), ("</think:opensource>",)),
    Pair(("<longcat_think>",), ("</longcat_think>",)),
    Pair(("<|think:start|>",), ("<|think:end|>",)),
    Pair(("<|plamo:begin_think:plamo|>",), ("<|plamo:end_think:plamo|>",)),
    Pair(("◁think▷",), ("◁/think▷",)),
    Pair(("[unused16]",), ("[unused17]",)),
    Pair((), ("[BEGIN FINAL RESPONSE]",)),
)
