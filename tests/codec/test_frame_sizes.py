"""A frame that tells its text twice is found by what it has beside the text it is read to tell (`FrameSizes`)."""

from __future__ import annotations

import json
import random

from dragoman.codec.repeated_keys import FrameSizes

KEY = b'"content"'
TEXTS = ("a", "word", "two words", 'a "quoted" one', "a\nline", "\\", "ü", "a text that is longer than the others", "🌧")


def frame(text: str, before: str | None, number: int) -> bytes:
    """A frame that tells a text, and another one before it under the same key."""
    earlier = "" if before is None else f'"content":{json.dumps(before)},'
    told = f'{earlier}"content":{json.dumps(text, ensure_ascii=False)}'
    return f'{{"id":"chunk-{number}","choices":[{{"index":0,"delta":{{{told}}}}}]}}'.encode()


def test_what_is_told_twice_is_found_among_frames_of_any_texts() -> None:
    draw = random.Random(3)
    for _ in range(300):
        found: list[str] = []
        sizes = FrameSizes(lambda code, where, found=found: found.append(where))  # type: ignore[misc]
        wanted: list[str] = []
        for number in range(draw.randint(2, 12)):
            text, before = draw.choice(TEXTS), draw.choice((None, None, None, *TEXTS))
            sizes.see(frame(text, before, number), text, KEY, str(number))
            wanted += [str(number)] if before not in (None, text) else []
        assert found == wanted


def test_frames_that_came_together_are_usual_if_none_tells_its_text_twice() -> None:
    draw = random.Random(5)
    for _ in range(300):
        sizes = FrameSizes(lambda code, where: None)
        first = draw.choice(TEXTS)
        sizes.see(frame(first, None, 0), first, KEY, "")
        texts = draw.choices(TEXTS, k=draw.randint(2, 6))
        before = [draw.choice((None, None, None, None, *TEXTS)) for _ in texts]
        frames = [frame(*told, number) for number, told in enumerate(zip(texts, before, strict=True))]
        is_once = all(earlier in (None, text) for text, earlier in zip(texts, before, strict=True))
        assert sizes.are_usual(frames, texts, KEY) == is_once, (first, texts, before)
