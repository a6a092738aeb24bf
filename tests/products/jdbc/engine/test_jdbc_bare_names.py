"""Where a name alone may call a function, it must be a column that the driver lists.

There is no Oracle here. H2's driver, in its mode for Oracle, gives the metadata, and the product's
facts are Oracle's: this shows the road from the text to `DatabaseMetaData`, not Oracle itself.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from support import jdbc_drivers
from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import Code
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.products.jdbc.engine.known_databases import KNOWN_DATABASES, OTHER
from tidegate.sql.judge import judge

SCRIPT = (
    'CREATE TABLE t (a INTEGER, "odd" INTEGER)',
    "CREATE SCHEMA elsewhere",
    "CREATE TABLE elsewhere.u (b INTEGER)",
    "CREATE SCHEMA sys",
    "CREATE TABLE sys.dict (c INTEGER)",
    "CREATE VIEW v AS SELECT a AS d FROM t",
)
READ = """
SELECT a, "odd", x.A FROM t x WHERE ROWNUM < 5
SELECT b FROM elsewhere.u
SELECT elsewhere.u.b FROM elsewhere.u
SELECT c FROM dict
SELECT d FROM v JOIN t ON a = d ORDER BY d
SELECT SYSDATE FROM dual
INSERT INTO t SELECT d, 1 FROM v
"""
REFUSED = """
SELECT my_func FROM dual
SELECT my_func FROM t
SELECT odd FROM t
SELECT pkg.my_func FROM t
SELECT b FROM u
SELECT b FROM t, (SELECT b FROM elsewhere.u WHERE my_func = 1)
SELECT a FROM t ORDER BY my_func
SELECT a FROM t x JOIN v ON x.my_func = 1
SELECT a FROM no_such_table
INSERT INTO t VALUES (my_func, 1)
WITH q AS (SELECT my_func AS a FROM t) SELECT a FROM q
"""


async def opinions(
    texts: str, facts: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Judgement | None]:
    product = structs.replace(KNOWN_DATABASES["jdbc:h2:"], **facts)
    url = jdbc_drivers.new_database("h2", tmp_path, SCRIPT) + ";MODE=Oracle"
    monkeypatch.setitem(KNOWN_DATABASES, "jdbc:h2:", product)
    options = {
        "driver_path": jdbc_drivers.driver_path("h2"),
        "jvm_options": jdbc_drivers.QUICK,
    }
    source = Source("s", "s", url, *engine_of(url), options=tuple(options.items()))
    engine: Any = await open_engine(source)
    try:
        found: dict[str, Judgement | None] = {}
        for text in texts.strip().splitlines():
            judgement = judge(text, product.dialect)
            assert judgement.effect in (Effect.READ, Effect.WRITE)
            found[text] = await engine.inspect(Statement(text), judgement)
        return found
    finally:
        await engine.close()


ORACLE = {"dialect": "oracle", "calls_bare": True, "system_schema": "SYS"}
UNKNOWN = {"dialect": OTHER.dialect, "calls_bare": OTHER.calls_bare}


async def test_columns_that_the_driver_lists_are_read(tmp_path, monkeypatch):
    found = await opinions(READ, ORACLE, tmp_path, monkeypatch)
    assert found == dict.fromkeys(found)


async def test_a_name_that_is_no_listed_column_is_refused(tmp_path, monkeypatch):
    for text, opinion in (await opinions(REFUSED, ORACLE, tmp_path, monkeypatch)).items():
        assert opinion is not None, text
        assert (opinion.effect, opinion.code) == (Effect.UNKNOWN, Code.SQL_FUNCTION.value)
        assert "may call a function" in opinion.reason
        assert opinion.hint


async def test_of_an_unknown_database_names_are_compared_without_case(tmp_path, monkeypatch):
    texts = "SELECT A, ODD, x.b FROM T, elsewhere.U x\nSELECT my_func FROM t"
    found = await opinions(texts, UNKNOWN, tmp_path, monkeypatch)
    first, second = found.values()
    assert first is None
    assert second is not None
    assert second.effect is Effect.UNKNOWN


def test_oracle_and_unknown_databases_are_asked_for_their_columns():
    assert [each.name for each in (*KNOWN_DATABASES.values(), OTHER) if each.calls_bare] == [
        "oracle",
        "other",
    ]
