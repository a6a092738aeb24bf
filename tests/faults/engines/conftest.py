"""A SQLite shop."""

import pytest

from support.engine_cases import CASES


@pytest.fixture
def shop(tmp_path):
    return CASES["sqlite"].prepare(tmp_path)
