"""A PostgreSQL shop with things in it that hide what they do."""

import asyncio
import inspect

import pytest

import postgres_server
from engine_cases import CASES

PATIENCE_S = 120


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, PATIENCE_S))
    return True


@pytest.fixture
def server():
    return postgres_server.shared("wheel")


@pytest.fixture
def case(tmp_path):
    return CASES["postgres"].prepare(tmp_path)


@pytest.fixture
def database(case):
    return case.url.partition("?")[0].rpartition("/")[2]
