"""Settings of all tests: no verdict by the clock, and more examples when `DRAGOMAN_SOAK` is set."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("test", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("test"), max_examples=5000)
settings.load_profile("soak" if os.environ.get("DRAGOMAN_SOAK") else "test")
