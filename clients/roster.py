"""All drivers, in the order of the table."""

from __future__ import annotations

import sdks
from driver import Driver

DRIVERS: list[Driver] = [*sdks.DRIVERS]
