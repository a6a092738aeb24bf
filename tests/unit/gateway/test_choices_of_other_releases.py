"""A choice of a database that cannot be read sends no statement to another one without a word."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.surface_gateway import sqlite_source
from tidegate.errors import Code, TidegateError
from tidegate.gateway.choices import Choices
from tidegate.gateway.source_connection import SessionTarget
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import ListSources, Request, Switch
from tidegate.store.carried import CarriedValues
from tidegate.store.sqlite.state import SqliteState

SOURCE = sqlite_source(Path("shop.db"))
ADA = Actor("ada", "ada", Scope.READ_ONLY)


async def test_a_choice_that_another_release_has_kept_is_refused_until_it_is_made_again(
    tmp_path: Path,
) -> None:
    state = SqliteState(tmp_path / "state.db")
    values = CarriedValues(state.carried, "choices", lambda: "5a" * 32, lambda: 100.0)
    choices = Choices(values, frozenset({"core"}), "worker 1")
    target = SessionTarget("archive", None)
    connection = SimpleNamespace(temporary=False, targets={}, target_of=lambda *_: target)

    def call(request: Request) -> Any:
        made = SimpleNamespace(actor=ADA, surface="core", request=request)
        return SimpleNamespace(source=SOURCE, connection=connection, call=made)

    await choices.keep("ada", f"target core {SOURCE.id}", b"\xc1 of another release")
    with pytest.raises(TidegateError, match="another release") as refused:
        await choices.load_target(call(ListSources()))
    assert refused.value.code is Code.RESULT_GONE and "again" in refused.value.hint
    switch = call(Switch("archive"))
    await choices.load_target(switch)
    await choices.keep_target(switch)
    await choices.load_target(call(ListSources()))
    assert connection.targets == {("ada", "core"): target}
    state.close()
