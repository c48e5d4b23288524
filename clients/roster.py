"""All drivers, in the order of the table."""

from __future__ import annotations

import agents
import harder
import programs
import sdks
from driver import Driver

DRIVERS: list[Driver] = [*sdks.DRIVERS, *programs.DRIVERS, *harder.DRIVERS, *agents.DRIVERS]
