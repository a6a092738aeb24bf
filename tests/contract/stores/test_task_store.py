"""The contract of `TaskStore`: what is known of a task outlasts its process."""

import pytest
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.tasks import TaskRecord

RECORD = TaskRecord("a" * 32, "ada", "core", "query", "one", 100.0, 100.0, 130.0)


def test_a_task_is_found_by_every_process(state, other):
    state.tasks.add(RECORD)
    assert other.tasks.find(RECORD.id) == RECORD
    assert other.tasks.find("b" * 32) is None


@pytest.mark.parametrize(
    "status", ["working", "input_required", "completed", "failed", "cancelled"]
)
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_what_became_of_a_task_is_kept(state, other, status, flags):
    state.tasks.add(RECORD)
    waiting, changes = flags
    later = structs.replace(
        RECORD, status=status, updated_at=120.5, alive_until=150.5, waiting=waiting, changes=changes
    )
    state.tasks.update(later)
    assert other.tasks.find(RECORD.id) == later


def test_an_update_of_what_is_not_kept_makes_nothing(state):
    state.tasks.update(RECORD)
    assert state.tasks.find(RECORD.id) is None


def test_an_id_is_used_once(state, other):
    state.tasks.add(RECORD)
    with pytest.raises(TidegateError) as caught:
        other.tasks.add(structs.replace(RECORD, actor="bob"))
    assert caught.value.code is Code.STATE_FAILED
    assert state.tasks.find(RECORD.id) == RECORD


def test_calls_that_are_found_by_what_they_are_are_listed_newest_first(state, other):
    first = structs.replace(RECORD, call="one")
    second = structs.replace(RECORD, id="b" * 32, created_at=200.0, call="two")
    for record in (first, second, structs.replace(RECORD, id="c" * 32)):
        state.tasks.add(record)
    assert other.tasks.calls(9) == (second, first)
    assert other.tasks.calls(1) == (second,)
    state.tasks.update(structs.replace(second, call=""))
    assert other.tasks.calls(9) == (first,)


def test_a_process_renews_its_own_open_tasks_alone(state):
    others = structs.replace(RECORD, id="b" * 32, server="two")
    over = structs.replace(RECORD, id="c" * 32, status="failed")
    for record in (RECORD, others, over):
        state.tasks.add(record)
    state.tasks.renew("one", 500.0)
    found = [state.tasks.find(each.id).alive_until for each in (RECORD, others, over)]
    assert found == [500.0, 130.0, 130.0]


def test_old_tasks_are_dropped(state):
    young = structs.replace(RECORD, id="b" * 32, created_at=200.0)
    state.tasks.add(RECORD)
    state.tasks.add(young)
    state.tasks.forget(150.0)
    assert state.tasks.find(RECORD.id) is None
    assert state.tasks.find(young.id) == young
