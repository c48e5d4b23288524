"""A provider packs its answer although none was asked for: it is unpacked, or the error names the packing."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from dragoman.client.exchange import Exchange
from dragoman.codec.compression import Unpacker
from dragoman.config import load_config
from dragoman.events import Event, Failure, fold
from dragoman.routing.resolve import resolve, with_defaults
from dragoman.types import Message, Request, Text
from for_each import for_each

ANSWER = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    b'{"content":"Good morning."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
ERROR = b'{"error":{"message":"the key is wrong"}}'
#: How brotli and zstd begin, and bytes of neither meaning.
BROTLI = b"\x8b\x9f\x00\x80" + bytes(range(120, 256)) * 4
ZSTD = b"\x28\xb5\x2f\xfd" + bytes(range(256)) * 4


def exchange(folder: Path) -> Exchange:
    file = folder / "dragoman.toml"
    file.write_text("")
    target = resolve("deepseek/m", load_config(file, environ={"DEEPSEEK_API_KEY": "k"}, home=folder))
    request = Request("m", (Message("user", (Text("Hi"),)),))
    return Exchange(target, with_defaults(request, target), new_id=lambda: "0" * 24)


def played(folder: Path, status: int, encoding: str, body: bytes, size: int) -> list[Event]:
    asked = exchange(folder)
    asked.head(status, {"content-encoding": encoding} if encoding else {})
    events = [event for at in range(0, len(body), size) for event in asked.feed(body[at : at + size])]
    return [*events, *asked.close()]


SIZES = pytest.mark.parametrize("size", [1, 7, 10_000])


@SIZES
@pytest.mark.parametrize("level", [0, 1, 5, 6, 9])
@pytest.mark.parametrize("encoding", ["", "deflate", "br"])
def test_zlib_is_unpacked_whatever_the_head_says(tmp_path: Path, encoding: str, level: int, size: int) -> None:
    reply = fold(played(tmp_path, 200, encoding, zlib.compress(ANSWER, level), size))
    assert (reply.text, reply.stop_reason) == ("Good morning.", "stop")
    assert "mislabelled-gzip" in [deviation.code for deviation in reply.deviations]


@SIZES
@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip", "identity", "aws-chunked"])
def test_a_plain_answer_is_read_whatever_the_head_says(tmp_path: Path, encoding: str, size: int) -> None:
    assert fold(played(tmp_path, 200, encoding, ANSWER, size)).text == "Good morning."
    failure = played(tmp_path, 401, encoding, ERROR, size)[-1]
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.message.partition(" (")[0]) == ("auth", "the key is wrong")


@SIZES
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_packed_error_is_read(tmp_path: Path, pack: object, size: int) -> None:
    assert callable(pack)
    failure = played(tmp_path, 429, "", pack(ERROR), size)[-1]
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.message.partition(" (")[0]) == ("rate", "the key is wrong")


@SIZES
@pytest.mark.parametrize(("encoding", "body"), [("br", BROTLI), ("zstd", ZSTD), ("deflate", zlib.compress(ANSWER)[2:])])
@pytest.mark.parametrize("status", [200, 503])
def test_what_cannot_be_unpacked_is_named(tmp_path: Path, status: int, encoding: str, body: bytes, size: int) -> None:
    failure = played(tmp_path, status, encoding, body, size)[-1]
    assert isinstance(failure, Failure)
    assert f"packed with {encoding!r}" in failure.message
    assert failure.message.isascii()


@SIZES
@pytest.mark.parametrize("body", [BROTLI, ZSTD])
@pytest.mark.parametrize("status", [200, 503])
def test_without_a_word_of_it_no_noise_is_told(tmp_path: Path, status: int, body: bytes, size: int) -> None:
    failure = played(tmp_path, status, "", body, size)[-1]
    assert isinstance(failure, Failure)
    assert "no text" in failure.message
    assert failure.message.isascii()


@SIZES
def test_a_text_that_begins_as_zlib_does_is_a_text(tmp_path: Path, size: int) -> None:
    failure = played(tmp_path, 200, "", b"x^2 is no answer of ours", size)[-1]
    assert isinstance(failure, Failure)
    assert "x^2 is no answer of ours" in failure.message


@for_each("step", [1, 7, 1000])
@for_each("beside", [-1, 0, 1])
def test_members_that_fill_a_step_are_read_once(step: int, beside: int) -> None:
    """A member that ends where a step does gives what stands behind it once, however the bytes come."""
    texts = [b"a" * (2 * step), b"b" * max(step + beside, 0), b"c" * step, b"", b"end"]
    body = b"".join(map(gzip.compress, texts))
    for size in (1, len(body) - 1, len(body)):
        unpacker = Unpacker(step)
        plain = [piece for at in range(0, len(body), size) for piece in unpacker.steps(body[at : at + size])]
        assert b"".join(plain) == b"".join(texts)
