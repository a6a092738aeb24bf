"""The part of apsw that this engine uses, with types.

apsw uses `Buffer`, which Python 3.11 lacks. Exceptions and constants are imported from apsw itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, cast

import apsw

Rows = list[tuple[Any, ...]]
Trace = Callable[["ApswCursor", str, object], bool]


class ApswCursor(Protocol):
    """A statement that was begun."""

    exec_trace: Trace | None
    has_vdbe: bool
    is_readonly: bool
    is_explain: int
    bindings_count: int

    def execute(
        self,
        statements: str,
        bindings: Sequence[Any] | None = None,
        *,
        can_cache: bool = True,
        explain: int = -1,
    ) -> ApswCursor: ...
    def fetchall(self) -> Rows: ...
    def get_description(self) -> tuple[tuple[str, str | None], ...]: ...
    def close(self, force: bool = False) -> None: ...
    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...


class ApswConnection(Protocol):
    """A connection; `interrupt` alone may be called from another thread while it works."""

    authorizer: Callable[[int, str | None, str | None, str | None, str | None], int] | None

    def execute(
        self,
        statements: str,
        bindings: Sequence[Any] | None = None,
        *,
        can_cache: bool = True,
        explain: int = -1,
    ) -> ApswCursor: ...
    def executemany(
        self, statements: str, sequenceofbindings: Iterable[Sequence[Any]]
    ) -> ApswCursor: ...
    def cursor(self) -> ApswCursor: ...
    def close(self, force: bool = False) -> None: ...
    def interrupt(self) -> None: ...
    def config(self, op: int, value: int) -> int: ...
    def load_extension(self, filename: str, entrypoint: str | None = None) -> None: ...
    def limit(self, id: int, newval: int = -1) -> int: ...
    def changes(self) -> int: ...
    def total_changes(self) -> int: ...
    def get_autocommit(self) -> bool: ...
    def txn_state(self, schema: str | None = None) -> int: ...
    def create_scalar_function(
        self,
        name: str,
        callable: Callable[..., Any],
        numargs: int = -1,
        *,
        deterministic: bool = False,
        flags: int = 0,
    ) -> None: ...
    def set_progress_handler(self, callable: Callable[[], bool], nsteps: int) -> None: ...
    def set_busy_timeout(self, milliseconds: int) -> None: ...
    def set_busy_handler(self, callable: Callable[[int], bool]) -> None: ...


def connect(name: str, flags: int) -> ApswConnection:
    """Open a connection. Raises: apsw.Error."""
    return cast("ApswConnection", apsw.Connection(name, flags=flags, statementcachesize=256))


class Failure(NamedTuple):
    """SQLite's result code, its extended one, and the byte of the text it points at (or -1)."""

    result: int
    extended: int
    offset: int


def failure_of(error: apsw.Error) -> Failure:
    """What SQLite said; zeros for an error of apsw's own."""
    facts = vars(error)
    return Failure(
        facts.get("result", 0), facts.get("extendedresult", 0), facts.get("error_offset", -1)
    )


class Change(Protocol):
    """One row of a changeset. Of a change of a row `old` holds the key and what was there, `new`
    what came, and both hold `no_change` for the rest."""

    name: str
    old: tuple[Any, ...] | None
    new: tuple[Any, ...] | None
    pk_columns: set[int]


class ChangeSession(Protocol):
    """Watches the changes of a connection."""

    def attach(self, name: str | None = None) -> None: ...
    def changeset(self) -> bytes: ...
    def close(self) -> None: ...


_changeset: Any = getattr(apsw, "Changeset", None)


class Changesets:
    """The session extension, which a build of SQLite may lack."""

    @property
    def there(self) -> bool:
        """Whether this build has it."""
        return hasattr(apsw, "Session")

    @property
    def no_change(self) -> object:
        return apsw.no_change

    def session(self, connection: ApswConnection) -> ChangeSession:
        """Watch the changes of a connection, once it is attached to tables."""
        return cast("ChangeSession", apsw.Session(cast("Any", connection), "main"))

    def iter(self, changeset: bytes) -> Iterator[Change]:
        """The rows of a changeset. Each is valid until the next is read."""
        return cast("Iterator[Change]", _changeset.iter(changeset))

    def invert(self, changeset: bytes) -> bytes:
        """The changeset that takes another one back."""
        return cast("bytes", _changeset.invert(changeset))

    def apply(
        self,
        changeset: bytes,
        connection: ApswConnection,
        *,
        conflict: Callable[[int, Any], int],
        flags: int,
    ) -> None:
        """Make the changes. `conflict` is asked about what cannot be made. Raises: apsw.Error."""
        _changeset.apply(changeset, connection, conflict=conflict, flags=flags)


changesets = Changesets()
