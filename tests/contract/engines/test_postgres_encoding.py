"""Text of a database without an encoding: PostgreSQL itself refuses to send what is not UTF-8."""

import pytest
from msgspec import structs

import support.postgres_server as postgres_server
from support.engine_cases import CASES
from tidegate.errors import Code, TidegateError


@pytest.fixture
def shop(tmp_path):
    """PostgreSQL's shop in a database whose server lets any byte through."""
    server = postgres_server.shared("wheel")
    server.drop_database("bytes")
    server.ask("CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0")
    server.ask("CREATE TABLE words (id int, word text)", "bytes")
    server.ask(r"INSERT INTO words VALUES (1, 'plain'), (2, E'caf\xe9'), (3, 'behind')", "bytes")
    case = CASES["postgres"].prepare(tmp_path)
    case.source = structs.replace(case.source, url=server.url("bytes"))
    yield case
    server.drop_database("bytes")


async def test_a_cell_that_is_not_utf8_is_reported_with_a_way_to_its_bytes(shop):
    async with shop.opened() as engine:
        with pytest.raises(TidegateError) as caught:
            await shop.ask(engine, "SELECT word FROM words ORDER BY id")
        assert caught.value.code is Code.SQL_FAILED
        assert "convert_to(column, 'SQL_ASCII')" in caught.value.hint
        exact = "SELECT convert_to(word, 'SQL_ASCII') FROM words WHERE id = 2"
        assert await shop.ask(engine, exact) == [(b"caf\xe9",)]
