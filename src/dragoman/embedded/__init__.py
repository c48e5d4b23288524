"""A real small model on this machine: llama.cpp's server in a child process, with nothing to set up.

It shows the plumbing (real bytes, real grammar, real arrival times), not intelligence: the model has 135 million
parameters and makes good calls only when a call is forced. Needs the extra `dragoman[embedded]`, which is looked for
only when a server starts.
"""

import importlib.util
from typing import Final

from dragoman.embedded.server import EmbeddedError, EmbeddedServer, check_model, start
from dragoman.embedded.weights import SMOLLM2, Progress, WeightsError, load_weights
from dragoman.providers.catalog import Model

#: What is known of it.
EMBEDDED: Final = Model(
    "embedded", SMOLLM2.name, 2048, 1024, ("text",), tools=True, thinking=False, digest=f"sha256:{SMOLLM2.sha256}"
)


def has_embedded() -> bool:
    """Return whether the extra that runs it is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


__all__ = [
    "EMBEDDED",
    "SMOLLM2",
    "EmbeddedError",
    "EmbeddedServer",
    "Progress",
    "WeightsError",
    "check_model",
    "has_embedded",
    "load_weights",
    "start",
]
