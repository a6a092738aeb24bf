"""A statement may hold the bytes of a serialized Java object: the process makes none of them but of
classes that only hold values."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.engine_cases import CASES
from tidegate.errors import TidegateError

A_URL = (
    "aced00057372000c6a6176612e6e65742e55524c962537361afce47203000749000868617368436f64654900"
    "04706f72744c0009617574686f726974797400124c6a6176612f6c616e672f537472696e673b4c000466696c"
    "6571007e00014c0004686f737471007e00014c000870726f746f636f6c71007e00014c000372656671007e00"
    "017870ffffffffffffffff740009782e696e76616c69647400022f6171007e0003740004687474707078"
)
"""A `java.net.URL`: comparing it looks its host up."""

A_NUMBER = (
    "aced0005737200116a6176612e6c616e672e496e746567657212e2a0a4f781873802000149000576616c7565"
    "787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b02000078700000002a"
)
"""A `java.lang.Integer` of 42."""


async def test_no_object_is_made_of_bytes_but_of_classes_that_hold_values(tmp_path: Path) -> None:
    case = CASES["jdbc-h2"].prepare(tmp_path)
    async with case.opened() as engine:
        with pytest.raises(TidegateError, match="REJECTED"):
            await case.ask(engine, f"SELECT CAST(X'{A_URL}' AS JAVA_OBJECT)")
        assert "42" in str(await case.ask(engine, f"SELECT CAST(X'{A_NUMBER}' AS JAVA_OBJECT)"))
