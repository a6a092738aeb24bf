"""Numbers as they travel in messages and in the binary formats of values: big-endian."""

from __future__ import annotations

from struct import Struct

INT16 = Struct("!h")
INT32 = Struct("!i")
INT64 = Struct("!q")
UINT16 = Struct("!H")
UINT32 = Struct("!I")
FLOAT4 = Struct("!f")
FLOAT8 = Struct("!d")
TIME_TZ = Struct("!qi")
"""Microseconds of the day, and seconds west of UTC."""
INTERVAL = Struct("!qii")
"""Microseconds, days, months."""
