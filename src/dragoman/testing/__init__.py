"""For tests of programs that use dragoman: a model that says what it is told to, in all five protocols.

`FakeModel` answers every client inside its `with` block; nothing goes out. `Recording` keeps the answers of real models
in a folder, and plays them again.
"""

from dragoman.recording.local_server import Served
from dragoman.testing.model import FakeModel
from dragoman.testing.recording import Recording
from dragoman.testing.turns import Cut, Delay, Error, Faulty, Turn, call, cut, delay, deviation, error, thinking

__all__ = [
    "Cut", "Delay", "Error", "FakeModel", "Faulty", "Recording", "Served", "Turn", "call", "cut", "delay", "deviation",
    "error", "thinking",
]  # fmt: skip
