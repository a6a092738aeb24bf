"""An outcome in the state is given out for the call that it is of."""

from msgspec import structs

from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.tasks import TaskRecord
from tidegate.protocol.model import ToolResult
from tidegate.protocol.tasks import Task
from tidegate.store.carried import CarriedValues
from tidegate.store.sqlite.state import SqliteState
from tidegate.surfaces.carried_outcomes import CarriedOutcomes
from tidegate.surfaces.tool_context import EndedWork

RECORD = TaskRecord("k1", "t1", "core", "query", "p1", 1.0, 1.0, 9.0, "completed", call="one call")


def test_a_record_that_was_given_another_call_or_caller_finds_no_outcome(tmp_path):
    state = SqliteState(tmp_path / "state.db")
    values = CarriedValues(state.carried, "outcome", lambda: "0" * 64, lambda: 5.0)
    outcomes = CarriedOutcomes(values)
    actor = Actor("t1", "ann", Scope.READ_ONLY)
    work = EndedWork("query", Scope.READ_ONLY, (), False, False, False)
    task = Task(RECORD, actor, NEVER, work)
    task.outcome = ToolResult([{"type": "text", "text": "12 rows"}])
    outcomes.keep(task, 60.0)
    assert outcomes.find(RECORD).outcome.content == task.outcome.content
    assert outcomes.find(structs.replace(RECORD, call="")) is not None  # its client has had it
    assert outcomes.find(structs.replace(RECORD, call="another call")) is None
    assert outcomes.find(structs.replace(RECORD, actor="t2")) is None
    assert outcomes.find(structs.replace(RECORD, id="k2")) is None
    state.close()
