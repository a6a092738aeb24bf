"""One server of the wire protocol for the tests of a worker, with a source of each kind
whose engine is here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from products.pgwire.support.wire_sources import (
    COMMENTS,
    PAGES,
    TABLES,
    cloud_source,
    duckdb_source,
    mariadb_source,
    sqlite_source,
)
from support import mysql_server
from support.cloud_surface import Desk
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server
from tidegate.engines.registry import ENGINES

TYPES = """
CREATE TABLE kinds (
  id int PRIMARY KEY, small smallint, big bigint, code varchar(20), amount numeric(12, 4),
  at timestamptz, moment timestamp, day date, clock time, span interval, ratio double precision,
  half real, yes boolean, data bytea, key uuid, doc jsonb, plain json, numbers int[], names text[]
);
INSERT INTO kinds SELECT i, i % 100, i * 10000000000, 'n' || i, i * -1.0625,
  timestamptz '2026-01-02 03:04:05.6+01' + i * interval '1 day', timestamp '1999-12-31 23:59:59',
  date '2000-01-01' - i, time '10:11:12.5', interval '1 year 2 mons -3 days 04:05:06.5' * i,
  i / 3.0, 0.5, i % 2 = 0, decode('00ff5c', 'hex'), md5(i::text)::uuid,
  jsonb_build_object('k', i), '{"a": [1, null]}',
  ARRAY[i, NULL, -i], ARRAY['a b', NULL, 'c"d\\', '']
FROM generate_series(1, 40) AS i;
INSERT INTO kinds (id, amount, at, ratio) VALUES (41, 'NaN', 'infinity', '-Infinity'),
  (42, 0, '-infinity', 'NaN'), (43, 12345678.0001, NULL, 1e300), (44, 0.0001, NULL, NULL);
"""


MASKS = [{"column": "item.name", "show": "nothing"}]
FILTERS = [{"table": "sale", "where": "id < 2"}]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting(TYPES + TABLES + COMMENTS + PAGES)
    yield shop
    shop.drop()


@pytest.fixture(scope="session")
def desk_and_server(
    postgres: PostgresShop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Desk, WireServer]]:
    folder = tmp_path_factory.mktemp("wire")
    with cloud_source(folder) as (desk, cloud, settings):
        sources = [
            {"name": "pg", "url": postgres.url, "access": "write"},
            {"name": "masked", "url": postgres.url, "masks": MASKS, "filters": FILTERS},
            sqlite_source(folder),
            duckdb_source(folder),
            cloud,
        ]
        if mysql_server.available():
            sources.append(mariadb_source())
        sources = [each for each in sources if each["url"].partition(":")[0] in ENGINES]
        more = {"cloud": settings} if cloud in sources else {}
        with wire_server(folder, sources=sources, **more) as served:
            yield desk, served


@pytest.fixture(scope="session")
def server(desk_and_server: tuple[Desk, WireServer]) -> WireServer:
    return desk_and_server[1]


@pytest.fixture(scope="session")
def desk(desk_and_server: tuple[Desk, WireServer]) -> Desk:
    """The provider behind the source `cloud`."""
    return desk_and_server[0]


@pytest.fixture
def needs_mariadb() -> None:
    if not mysql_server.available():
        pytest.skip("needs a MariaDB server (the package mariadb-server-core)")
