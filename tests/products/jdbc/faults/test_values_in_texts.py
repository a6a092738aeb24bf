"""A driver that writes values into the text itself makes no SQL of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.engine_cases import JDBC_CASES
from tidegate.errors import Code, TidegateError

WRITTEN = "written-by-a-value"


async def test_a_value_is_never_read_as_sql(tmp_path: Path) -> None:
    case = JDBC_CASES["mariadb"].prepare(tmp_path)
    async with case.opened() as engine:
        ((directory,),) = await case.ask(engine, "SELECT @@datadir")
        path = f"{directory}{WRITTEN}".encode().hex()
        # To MariaDB `--'` begins a string; the driver takes it for a comment.
        for value in (f", load_file(0x{path}), ", ", @@datadir , "):
            with pytest.raises(TidegateError) as caught:
                await case.ask(engine, "SELECT 1--'\n ? '", params=(value,))
            assert caught.value.code is Code.ARGUMENT_INVALID
        assert await case.ask(engine, "SELECT ?", params=(", @@datadir , ",)) == [
            (", @@datadir , ",)
        ]
