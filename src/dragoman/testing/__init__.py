"""For tests of programs that use dragoman: a model that says what it is told to, in all five protocols.

`FakeModel` answers every client inside its `with` block; nothing goes out.
"""

from dragoman.testing.model import FakeModel
from dragoman.testing.server import Served
from dragoman.testing.turns import Cut, Delay, Error, Faulty, Turn, call, cut, delay, deviation, error, thinking

__all__ = [
    "Cut", "Delay", "Error", "FakeModel", "Faulty", "Served", "Turn", "call", "cut", "delay", "deviation", "error",
    "thinking",
]  # fmt: skip
