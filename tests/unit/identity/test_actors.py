"""The actors without a token."""

from tidegate.identity.builtin_actors import ANONYMOUS, cli, stdio
from tidegate.model.actors import Scope


def test_everyone_without_a_token_is_read_only_unless_writes_are_allowed():
    assert [actor.scope for actor in (ANONYMOUS, stdio(), cli())] == [Scope.READ_ONLY] * 3
    assert stdio(allow_writes=True).scope is Scope.READ_WRITE
    assert cli(allow_writes=True).scope is Scope.READ_WRITE


def test_only_the_one_at_the_command_line_is_taken_for_a_person():
    assert [actor.kind for actor in (ANONYMOUS, stdio(), cli())] == ["agent", "agent", "human"]
    assert [actor.id for actor in (ANONYMOUS, stdio(), cli())] == ["anonymous", "stdio", "cli"]
