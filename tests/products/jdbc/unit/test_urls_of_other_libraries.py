"""The URL of a library that Tidegate does not have is answered with one that it takes."""

from __future__ import annotations

import re

import pytest

from tidegate.engines.registry import find
from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.engine.url import names_one_server, parse_jdbc_url

SCHEMES = (
    *("mssql", "sqlserver", "oracle", "snowflake", "clickhouse", "redshift", "cockroachdb"),
    *("cockroach", "db2", "trino", "databricks", "h2", "hsqldb", "derby", "hive"),
)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_sentence_names_a_url_that_is_read(scheme: str) -> None:
    with pytest.raises(TidegateError) as refused:
        find(f"{scheme}://user:secret@host/name")
    error = refused.value
    assert error.code is Code.SOURCE_URL and "secret" not in f"{error.message} {error.hint}"
    found = re.search(r"jdbc:[^\s,]+", error.hint or "")
    assert found is not None
    url = parse_jdbc_url(found[0])
    assert url.kind == "file" or names_one_server(url)
