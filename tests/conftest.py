"""What every test runs under."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from hypothesis import settings

# No time limit on an example: a loaded machine is slow, and slowness is measured in bench/.
settings.register_profile("house", deadline=None, database=None)
settings.load_profile("house")

PATIENCE_S = 120
"""A coroutine test that is not done by then hangs."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Each coroutine test has a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, PATIENCE_S))
    return True
