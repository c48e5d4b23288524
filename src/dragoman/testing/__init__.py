"""Test programs that use dragoman: a scripted model, in all five protocols.

`FakeModel` answers every client inside its `with` block; no request leaves the process. `Recording` keeps the answers
of real models in a folder, and replays them.
"""

from dragoman.recording.local_server import Served
from dragoman.testing.model import FakeModel
from dragoman.testing.recording import Recording
from dragoman.testing.turns import Cut, Delay, Error, Faulty, Turn, call, cut, delay, deviation, error, thinking

__all__ = [
    "Cut", "Delay", "Error", "FakeModel", "Faulty", "Recording", "Served", "Turn", "call", "cut", "delay", "deviation",
    "error", "thinking",
]  # fmt: skip
