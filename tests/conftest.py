"""What every test runs under."""

from __future__ import annotations

from hypothesis import settings

# No time limit on an example: a loaded machine is slow, and slowness is measured in bench/.
settings.register_profile("house", deadline=None, database=None)
settings.load_profile("house")
