"""All drivers, in the order of the table."""

from __future__ import annotations

import agents
import programs
import sdks
from driver import Driver

DRIVERS: list[Driver] = [*sdks.DRIVERS, *programs.DRIVERS, *agents.DRIVERS]
