"""`make reliability` and `make security`: promises about a real `dragoman serve` process, each measured.

`provider` plays a model server of all five protocols, `shim` breaks connections on purpose, `process` runs the gateway,
`caller` is a client without any SDK, `run` picks the rows. Each row is a file of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
#: The replies and the SDK clients of the tests are used here too.
sys.path.append(str(PROJECT / "tests"))
