"""A PostgreSQL shop with things in it that hide what they do."""

import pytest

import support.postgres_server as postgres_server
from support.engine_cases import CASES


@pytest.fixture
def server():
    return postgres_server.shared("wheel")


@pytest.fixture
def case(tmp_path):
    return CASES["postgres"].prepare(tmp_path)


@pytest.fixture
def database(case):
    return case.url.partition("?")[0].rpartition("/")[2]
