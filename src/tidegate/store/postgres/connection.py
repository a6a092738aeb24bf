"""Connections to the state's database, each of whose statements ends in time.

The bound is on our side: PostgreSQL ends no COMMIT that waits for a standby, and nothing at all
when the link is cut. When it is reached, the socket is closed. Nothing here needs a session: the
connections work through a pooler that gives each transaction another one.

Each statement looks for functions, operators and types in `pg_catalog` alone: one who owns another
schema of the database, or sets `search_path` for it, could have a gate call theirs otherwise.
"""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import ClientCursor, errors
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from tidegate.errors import Code, TidegateError
from tidegate.store.postgres.text import DecodingLoader, EncodingDumper

Value = TypeVar("Value")
Row = tuple[Any, ...]

BOUND_S = 5.0
"""How long an operation may take, from its first statement to the answer to its last."""
CONNECT_S = 3
_LOOK_S = 0.1
_NAMES = b"SET LOCAL search_path = pg_catalog, pg_temp;"
"""What comes before the first statement of each transaction. Temporary tables come first if they
are not named."""
_TEXTS = ("text", "varchar", "name", "bpchar")


class Late(psycopg.OperationalError):
    """PostgreSQL did not answer in time."""


class StateConnection(psycopg.Connection[Row]):
    """A connection that is closed, with `Late`, when `deadline` has passed without an answer."""

    deadline: float = float("inf")
    warned: bool = False
    """A COMMIT was answered with the warning that it may not have reached the standby."""

    def wait(
        self, gen: PQGen[Value], interval: float = _LOOK_S, timeout: float | None = None
    ) -> Value:
        try:
            return super().wait(_bounded(gen, self.deadline), min(interval, _LOOK_S))
        except Late:
            self.pgconn.finish()
            raise

    def ask(self, sql: str, values: Any = None) -> psycopg.Cursor[Row]:
        """Run a statement; `values` replace its %s or %(name)s."""
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            return self.execute(sql.encode(), values)
        # Both in one message, so in one transaction, to which a BEGIN in it gives its name.
        # Messages of several statements carry no values but in their texts.
        cursor = ClientCursor(self)
        cursor.execute(_NAMES + sql.encode(), values)
        cursor.nextset()
        return cursor

    def change(self, sql: str, values: Any = None) -> int:
        """Run a statement; how many rows it changed."""
        return self.ask(sql, values).rowcount

    def row(self, sql: str, values: Any = None) -> Row | None:
        """The first row that a statement returns."""
        return self.ask(sql, values).fetchone()

    def number(self, sql: str, values: Any = None) -> int:
        """The number that a statement returns, 0 for NULL."""
        row = self.row(sql, values)
        return int(row[0] or 0) if row is not None else 0


def _bounded(gen: PQGen[Value], deadline: float) -> PQGen[Value]:
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and monotonic() >= deadline:
                raise Late("PostgreSQL did not answer in time")
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


def connect(url: str, bound_s: float = BOUND_S) -> StateConnection:
    """A connection to the database of a URL. Raises: psycopg.Error."""
    info = make_conninfo(
        url, connect_timeout=CONNECT_S, client_encoding="utf8", application_name="tidegate state"
    )
    # `prepare_threshold`: prepared statements are of a session.
    connection = StateConnection.connect(info, autocommit=True, prepare_threshold=None)
    connection.deadline = monotonic() + bound_s
    for name in _TEXTS:
        connection.adapters.register_loader(name, DecodingLoader)
    connection.adapters.register_dumper(str, EncodingDumper)
    connection.add_notice_handler(lambda notice: _note(connection, notice))
    return connection


def _note(connection: StateConnection, notice: errors.Diagnostic) -> None:
    if notice.sqlstate in ("01000", "57P01"):
        connection.warned = True


def close_quietly(connection: StateConnection) -> None:
    """Close it, also where it is broken."""
    with suppress(psycopg.Error):
        connection.close()


def is_lost(error: Exception, connection: StateConnection | None) -> bool:
    """Whether the connection is gone, and another one may work."""
    return connection is None or connection.closed or isinstance(error, Late)


def failed(error: Exception) -> TidegateError:
    """The coded error of what PostgreSQL says, or did not say."""
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return standby()
    if isinstance(error, errors.DiskFull):
        return TidegateError(
            Code.STATE_FAILED,
            "The state cannot be written: the disk of its database is full.",
            hint="Free some space there, then run it again.",
        )
    if isinstance(error, psycopg.OperationalError):
        return TidegateError(
            Code.STATE_FAILED,
            f"The state's database does not answer: {_first_line(error)}.",
            hint="See that PostgreSQL runs and can be reached from this machine.",
            retry_after_s=1.0,
        )
    return TidegateError(
        Code.STATE_FAILED,
        f"Reading or writing the state failed: {_first_line(error)}.",
        hint="See the log of its database.",
    )


def standby() -> TidegateError:
    """The refusal of a server that is a standby."""
    return TidegateError(
        Code.STATE_FAILED,
        "The state's database can be read only: it is a standby.",
        hint="Name all servers of it in the URL, with target_session_attrs=read-write.",
        retry_after_s=1.0,
    )


def outcome_unknown(text: str) -> TidegateError:
    """The error of a change of which is not known whether it was kept."""
    return TidegateError(
        Code.STATE_FAILED,
        f"It is not known whether the state kept this change: {text}.",
        hint="See what is there before you do it again.",
        retry_after_s=1.0,
        details={"outcome": "unknown"},
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(".")
