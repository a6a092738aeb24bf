"""Sends what INSERT, UPDATE, REPLACE, DELETE and EXEC ask for: one request after another.

No request of a change is sent twice. Those of one statement stop at the first that fails, and the
error lists what was done, what failed, and what was not sent. All requests are built before the
first is sent, so a value that does not fit changes nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import apsw
import msgspec

from tidegate.engines.api import Row
from tidegate.engines.sqlite.cost_estimate import MAX_PATTERN_BYTES, CostEstimate
from tidegate.errors import Code, TidegateError
from tidegate.http_client.rules import RequestFailed
from tidegate.model.results import Column, ColumnKind
from tidegate.model.statements import NewState
from tidegate.products.cloud.documents.document_catalog import Found
from tidegate.products.cloud.documents.model import Method
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.engine.booleans import BOOLEAN, boolean_places, with_booleans
from tidegate.products.cloud.engine.call_limits import CallCounts
from tidegate.products.cloud.engine.cursor import RowsCursor
from tidegate.products.cloud.engine.functions import FUNCTIONS
from tidegate.products.cloud.engine.provider_calls import ProviderCalls, check_status
from tidegate.products.cloud.engine.resource_table import quoted
from tidegate.products.cloud.engine.statement_run import MOST_CELL, authorize_reading
from tidegate.products.cloud.http.requests import ApiRequest, build_request
from tidegate.products.cloud.http.responses import SqlValue, read_page
from tidegate.products.cloud.language.descriptions import columns_of

MOST_REQUESTS: Final = 10_000
_MOST_COLUMNS: Final = 1_900
RETURNING_S: Final = 2.0
"""How long the expressions after RETURNING may take: nothing else can end them."""
_STEPS: Final = 20_000
_OPEN_ENDED: Final = frozenset({408, 500, 502, 504})
"""Statuses that leave it open whether a change took effect: a gateway may have given up first."""
_LISTED: Final = 50
"""Requests that the details of an error list by name."""
_NAMED: Final = 10
"""Those of each kind that its message names."""


class Change(NamedTuple):
    """One request of a statement that changes something."""

    found: Found
    method: Method
    values: Mapping[str, Any]
    request: ApiRequest

    @property
    def shown(self) -> str:
        """The request without its query and body, which may hold secrets."""
        return f"{self.request.verb} {self.request.url.partition('?')[0]}"


class ChangeOutcome(msgspec.Struct):
    """What was done: the rows of the replies, as they came."""

    done: list[str] = []
    rows: list[dict[str, SqlValue]] = []


def combinations(names: Sequence[str], members: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Values by name, for each combination of the members. Raises: TidegateError
    ARGUMENT_INVALID if there are too many."""
    count = 1
    for each in members:
        count *= len(each)
    if count > MOST_REQUESTS:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The statement means {count} requests: too many."
        )
    return [dict(zip(names, each, strict=True)) for each in itertools.product(*members)]


def build_change(found: Found, method: Method, values: Mapping[str, Any]) -> Change:
    """Raises: TidegateError ARGUMENT_INVALID."""
    given = {name: value for name, value in values.items() if value is not None}
    return Change(found, method, given, build_request(method, found.document.schemas, given))


async def send_changes(
    changes: Sequence[Change], calls: ProviderCalls, counts: CallCounts
) -> ChangeOutcome:
    """Send the requests in their order.

    Raises: TidegateError: of the first that failed, with `done`, `failed` and `not_sent` in
    `details`; SQL_OUTCOME where it is not known whether the request took effect; CancelledError as
    SQL_OUTCOME if a request was under way.
    """
    counts.check(len(changes))
    providers = {change.found.provider.name for change in changes}
    for each in providers:
        calls.drop_cached(each)
    try:
        return await _send_each(changes, calls, counts)
    finally:
        for each in providers:
            calls.drop_cached(each)


async def _send_each(
    changes: Sequence[Change], calls: ProviderCalls, counts: CallCounts
) -> ChangeOutcome:
    outcome = ChangeOutcome([], [])
    for at, change in enumerate(changes):
        try:
            response = await calls.send(
                change.found,
                change.method,
                change.request,
                change.values,
                counts,
                tries_again=False,
            )
            check_status(change.found, change.method, response)
        except RequestFailed as error:
            if error.was_sent:
                raise _unknown(change, error.message, changes, at, outcome) from None
            raise _failed(error, changes, at, outcome) from None
        except TidegateError as error:
            raise _failed(error, changes, at, outcome) from None
        except asyncio.CancelledError:
            raise _unknown(change, "The wait for it was ended.", changes, at, outcome) from None
        outcome.done.append(change.shown)
        outcome.rows += _reply_rows(change, response.body)
    return outcome


def _reply_rows(change: Change, content: bytes) -> list[dict[str, SqlValue]]:
    """The rows of a reply to a change, which took effect: what cannot be read is left out."""
    host = change.request.url.partition("?")[0]
    try:
        page = read_page(
            change.method,
            change.found.document.schemas,
            content,
            host,
            renames=change.found.provider.renames_columns,
        )
        return [{**change.values, **row} for row in page.rows]
    except TidegateError:
        return []


def _details(changes: Sequence[Change], at: int, outcome: ChangeOutcome) -> dict[str, Any]:
    left = [each.shown for each in changes[at + 1 :]]
    return {
        "done": outcome.done[:_LISTED],
        "done_count": len(outcome.done),
        "failed": changes[at].shown,
        "not_sent": left[:_LISTED],
        "not_sent_count": len(left),
    }


def _shares(changes: Sequence[Change], at: int, outcome: ChangeOutcome, fate: str) -> str:
    """What became of each request: many callers see the message alone."""
    left = [each.shown for each in changes[at + 1 :]]
    return (
        f" Of {len(changes)} requests {len(outcome.done)} were done{_named(outcome.done)},"
        f" this one {fate} ({changes[at].shown}), and"
        f" {len(left)} were not sent{_named(left)}."
    )


def _named(requests: Sequence[str]) -> str:
    if not requests:
        return ""
    more = ", ..." if len(requests) > _NAMED else ""
    return f" ({', '.join(requests[:_NAMED])}{more})"


def _failed(
    error: TidegateError, changes: Sequence[Change], at: int, outcome: ChangeOutcome
) -> TidegateError:
    details = {**error.details}
    message, hint = error.message, error.hint
    if details.get("http_status") in _OPEN_ENDED:
        message += " It may have taken effect nevertheless."
        hint = "Look whether the change is there before you send it again."
        details["retryable"] = False
    if len(changes) > 1:
        details |= _details(changes, at, outcome)
        message += _shares(changes, at, outcome, "failed")
    return TidegateError(
        error.code, message, hint=hint, retry_after_s=error.retry_after_s, details=details
    )


def _unknown(
    change: Change, reason: str, changes: Sequence[Change], at: int, outcome: ChangeOutcome
) -> TidegateError:
    shares = _shares(changes, at, outcome, "is in doubt") if len(changes) > 1 else ""
    return TidegateError(
        Code.SQL_OUTCOME,
        f"{change.shown} was sent, and its outcome is unknown: {reason} It may have taken effect."
        f"{shares}",
        hint="Look whether the change is there before you send it again.",
        details=_details(changes, at, outcome),
    )


class ChangeCursor(RowsCursor):
    """The rows that RETURNING gives, and what was sent (`engines.api.UpstreamCursor`)."""

    truncations = ()

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Sequence[Row],
        counts: CallCounts,
        *,
        affected: int,
    ) -> None:
        """`new_state` is set where the change was one that a person approved."""
        self.new_state: NewState | None = None
        super().__init__(columns, rows, affected=affected)
        self.upstream = counts.use


def _columns(found: Found, method: Method, rows: Sequence[Mapping[str, SqlValue]]) -> list[str]:
    """The columns of a reply to a change: those of the document, others that came, parameters."""
    names: dict[str, str] = {}
    for name in (
        *columns_of(found, method),
        *(name for row in rows for name in row),
        *(each.name for each in method.parameters),
    ):
        names.setdefault(folded(name), name)
    return list(names.values())[:_MOST_COLUMNS]


def reply(
    found: Found, method: Method, rows: Sequence[Mapping[str, SqlValue]]
) -> tuple[list[Column], list[Row]]:
    """The fields of replies, as EXEC gives them."""
    bound = {folded(each.name) for each in method.parameters} - {
        folded(name) for name in columns_of(found, method)
    }
    names = [each for each in _columns(found, method, rows) if folded(each) not in bound]
    described = [(each, _declared(found, method).get(folded(each), "")) for each in names]
    made = iter([tuple(row.get(name) for name in names) for row in rows])
    shown = [Column(name, declared, _kind(declared)) for name, declared in described]
    return shown, list(with_booleans(made, boolean_places(described)))


def _declared(found: Found, method: Method) -> dict[str, str]:
    """The types of the columns of a reply that are booleans, by their folded names."""
    kind = found.document.schemas.kind
    columns = columns_of(found, method)
    return {
        folded(name): BOOLEAN
        for name, schema in columns.items()
        if schema and kind(schema) == "boolean"
    }


def _kind(declared: str | None) -> ColumnKind:
    return "boolean" if declared == BOOLEAN else "other"


def returned(
    found: Found, method: Method, rows: Sequence[Mapping[str, SqlValue]], returning: str
) -> tuple[list[Column], list[Row]]:
    """What RETURNING makes of the rows of replies, within `RETURNING_S`. Raises: TidegateError
    SQL_FAILED, whatever the statement's own functions raise."""
    columns = _columns(found, method, rows)
    if returning.strip() == "*":
        given = {folded(name) for row in rows for name in row}
        fields = {folded(name) for name in columns_of(found, method)}
        shown = [each for each in columns if folded(each) in given | fields]
        returning = ", ".join(map(quoted, shown)) or "*"
    connection: Any = apsw.Connection(":memory:")
    try:
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        for name, function, count in FUNCTIONS:
            connection.create_scalar_function(name, function, count, deterministic=True)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, MOST_CELL)
        table = quoted(found.resource.name)
        types = _declared(found, method)
        shown = [f"{quoted(each)} {types.get(folded(each), '')}" for each in columns]
        connection.execute(f"CREATE TABLE {table}({', '.join(shown)})")
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f"INSERT INTO {table} VALUES({marks})",
            [tuple(row.get(name) for name in columns) for row in rows],
        )
        connection.authorizer = authorize_reading
        query = f"SELECT {returning} FROM {table}"
        # No step of SQLite can be stopped midway, so none may take long.
        program = CostEstimate(connection.execute(f"EXPLAIN {query}").fetchall())
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, min(MOST_CELL, program.max_value_bytes))
        connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES)
        until = time.monotonic() + RETURNING_S
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        described: list[tuple[str, str | None]] = []

        def note(cursor: Any, sql: str, bindings: object) -> bool:
            described.extend(cursor.get_description())
            return True

        cursor = connection.cursor()
        cursor.exec_trace = note
        found_rows: list[Any] = cursor.execute(query).fetchall()
        made = with_booleans(iter(found_rows), boolean_places(described))
        names = [Column(name, each or "", _kind(each)) for name, each in described]
        return names, list(made)
    except apsw.InterruptError:
        raise TidegateError(
            Code.SQL_FAILED, f"RETURNING took more than {RETURNING_S:g} s."
        ) from None
    except TidegateError as error:
        raise TidegateError(Code.SQL_FAILED, error.message) from None
    except Exception as error:  # noqa: BLE001 - of a function of ours, with any value
        raise TidegateError(Code.SQL_FAILED, f"RETURNING failed: {str(error)[:500]}.") from None
    finally:
        connection.close(True)
