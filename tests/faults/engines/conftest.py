"""A SQLite shop, a way to change it from outside, and a loop for each coroutine test."""

import asyncio
import inspect

import pytest

from engine_cases import CASES

PATIENCE_S = 30


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, PATIENCE_S))
    return True


@pytest.fixture
def shop(tmp_path):
    return CASES["sqlite"].prepare(tmp_path)
