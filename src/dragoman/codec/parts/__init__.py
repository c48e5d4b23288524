"""The parts of an answer put together: texts, thinking, calls and their arguments."""
