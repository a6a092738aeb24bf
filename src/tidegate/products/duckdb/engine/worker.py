"""The process that DuckDB lives in: `python -m tidegate.products.duckdb.engine.worker`.

Answers the engine's requests, one statement at a time. The only place that imports the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import msgspec

from tidegate.engines.worker.frames import unpack
from tidegate.engines.worker.worker_main import Answer, serve
from tidegate.errors import Code, TidegateError
from tidegate.model.changes import Comparison
from tidegate.model.requests import Browse
from tidegate.model.row_changes import FoundRows
from tidegate.model.statements import DryRun, Effect, Judgement
from tidegate.products.duckdb.engine import catalog, changes
from tidegate.products.duckdb.engine.connection import DuckdbSession, bound_memory
from tidegate.products.duckdb.engine.dry_run import run_dry
from tidegate.products.duckdb.engine.errors import translate
from tidegate.products.duckdb.engine.folder import FolderSession
from tidegate.products.duckdb.engine.inspect import check_own, explained, read
from tidegate.products.duckdb.engine.messages import (
    Change,
    Changed,
    CompareOrRestore,
    Definition,
    EditedRows,
    EditRows,
    FeedTable,
    Fill,
    Filled,
    Greeting,
    Look,
    Metadata,
    Opinion,
    Portion,
    PutBack,
    Question,
    ReadByKeys,
    Run,
    Setup,
    Started,
    Version,
)
from tidegate.products.duckdb.engine.transaction import Execution, prepared, search_path

if TYPE_CHECKING:
    from tidegate.products.duckdb.engine.row_feeds import TableFeed

Body = TypeVar("Body")


class Worker:
    """One session and the statement on it."""

    def __init__(self) -> None:
        self._session: DuckdbSession | None = None
        self._execution: Execution | None = None
        self._changing: duckdb.DuckDBPyConnection | None = None
        self._feed: TableFeed | None = None
        self.verbs: Mapping[str, Answer] = {
            "setup": lambda body: self.setup(unpack(body, Setup)),
            "greet": lambda body: self.greet(unpack(body, Version)),
            "run": lambda body: self.run(unpack(body, Run)),
            "fetch": lambda body: self.fetch(unpack(body, int)),
            "fill": lambda body: self.fill(unpack(body, Fill)),
            "close": lambda _: self.close(),
            "release": lambda _: self.session.release(),
            "prepare": lambda body: prepared(self.session, unpack(body, Run)),
            "inspect": lambda body: self.inspect(unpack(body, Question)),
            "look": lambda body: self.look(unpack(body, Look)),
            "dry_run": lambda body: self.dry_run(unpack(body, Run)),
            "stamp": lambda body: self.schema_version(unpack(body, Version)),
            "known": lambda _: self.known(),
            "has_triggers": lambda body: self.has_triggers(unpack(body, Version)),
            "reversibility": lambda body: changes.reversibility(self.session, unpack(body, Run)),
            "change": lambda body: self.change(unpack(body, Change)),
            "compare": lambda body: self.compare(unpack(body, CompareOrRestore)),
            "read_by_keys": lambda body: self.read_by_keys(unpack(body, ReadByKeys)),
            "begin_feed": lambda body: self.begin_feed(unpack(body, FeedTable)),
            "feed_rows": lambda body: self.feed_rows(unpack(body, list[list[Any]])),
            "end_feed": lambda _: self.end_feed(),
            "edit_rows": lambda body: self.edit_rows(unpack(body, EditRows)),
            "put_back": lambda body: self.put_back(unpack(body, CompareOrRestore)),
            "commit": lambda _: self.commit(),
        }

    @property
    def session(self) -> DuckdbSession:
        if self._session is None:
            raise TidegateError(
                Code.INTERNAL, "The process of the database driver was not given its settings."
            )
        return self._session

    def interrupt(self) -> None:
        if self._session is not None:
            self._session.interrupt()

    def translate(self, error: Exception) -> TidegateError:
        self.close()
        if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
            self.session.release()
        return translate(error)

    def setup(self, setup: Setup) -> None:
        bound_memory(setup)
        folder = setup.folder
        self._session = DuckdbSession(setup) if folder is None else FolderSession(setup, folder)

    def greet(self, version: Version) -> Greeting:
        cursor = self.session.cursor(version.version)
        try:
            return Greeting(catalog.status(cursor))
        finally:
            self.session.drop(cursor)

    def run(self, run: Run) -> Started:
        self.close()
        self._execution = Execution(self.session, run)
        return self._execution.started(run.max_rows)

    def fetch(self, max_rows: int) -> Portion:
        return self._running().fetch(max_rows)

    def fill(self, fill: Fill) -> Filled:
        return self._running().fill(fill)

    def close(self) -> None:
        execution, self._execution = self._execution, None
        if execution is not None:
            execution.close()
        cursor, self._changing = self._changing, None
        self._feed = None
        if cursor is not None:
            with suppress(duckdb.Error):
                cursor.execute("ROLLBACK")
            self.session.drop(cursor)

    def change(self, change: Change) -> Changed:
        """Run a change whose rows are kept: its transaction waits for `commit`, or is undone."""
        run = change.run
        cursor = self._begin_change(run.version)
        if run.schema is not None:
            cursor.execute(f"SET search_path = {search_path(run.schema)}")
        return changes.run_change(cursor, run, change.max_bytes)

    def compare(self, kept: CompareOrRestore) -> Comparison:
        cursor = self.session.cursor(kept.version)
        try:
            return changes.compare(cursor, kept.image)
        finally:
            self.session.drop(cursor)

    def read_by_keys(self, wanted: ReadByKeys) -> FoundRows:
        from tidegate.products.duckdb.engine import row_changes  # needed only to edit rows

        cursor = self.session.cursor(wanted.version)
        try:
            return row_changes.read_images(cursor, wanted)
        finally:
            self.session.drop(cursor)

    def edit_rows(self, edits: EditRows) -> EditedRows:
        """Make edits: the transaction waits for `commit`, or is undone."""
        from tidegate.products.duckdb.engine import row_changes

        return row_changes.edit_rows(self._begin_change(edits.version), edits)

    def begin_feed(self, wanted: FeedTable) -> None:
        """Begin to add rows: the transaction waits for `commit`, or is undone."""
        from tidegate.products.duckdb.engine.row_feeds import TableFeed

        self._feed = TableFeed(self._begin_change(wanted.version), wanted)

    def feed_rows(self, rows: list[list[Any]]) -> None:
        """Add some rows."""
        if self._feed is None:
            raise TidegateError(Code.SOURCE_NOT_CONNECTED, "There is no change under way.")
        self._feed.add(rows)

    def end_feed(self) -> EditedRows:
        """What the rows changed."""
        feed, self._feed = self._feed, None
        if feed is None:
            raise TidegateError(Code.SOURCE_NOT_CONNECTED, "There is no change under way.")
        return feed.end()

    def put_back(self, kept: CompareOrRestore) -> PutBack:
        """Put rows back: the transaction waits for `commit`, or is undone."""
        return changes.put_back(self._begin_change(kept.version), kept.image)

    def commit(self) -> None:
        cursor, self._changing = self._changing, None
        if cursor is None:
            raise TidegateError(Code.SOURCE_NOT_CONNECTED, "There is no change under way.")
        try:
            cursor.execute("COMMIT")
        finally:
            self.session.drop(cursor)

    def _begin_change(self, version: str) -> duckdb.DuckDBPyConnection:
        self.close()
        self._changing = cursor = self.session.cursor(version, writes=True)
        return cursor

    def inspect(self, question: Question) -> Opinion:
        """The opinion of DuckDB's parser and planner; none if it cannot be parsed."""
        text = question.text
        try:
            reading = read(text)
        except TidegateError as error:
            if error.code is not Code.SQL_MULTIPLE:
                return Opinion(None)
            return Opinion(
                Judgement(Effect.UNKNOWN, "duckdb.one_statement", error.message, error.code.value)
            )
        except duckdb.Error:
            return Opinion(None)
        cursor = self.session.cursor(question.version)
        try:
            check_own(cursor, question.own)
            judgement = explained(reading, cursor)
        finally:
            self.session.drop(cursor)
        return Opinion(msgspec.structs.replace(judgement, tables=self._tables(text)))

    def look(self, look: Look) -> Metadata:
        session = self.session
        cursor = session.cursor(look.version)
        try:
            if isinstance(session, FolderSession):
                return _look_at_files(session, cursor, look.browse)
            if look.browse.aspect == "catalog":
                return Metadata(catalog=catalog.catalog(cursor, look.browse, session.facts))
            if look.browse.aspect == "ddl":
                return Metadata(ddl=catalog.ddl(cursor, look.browse))
            return Metadata(counts=catalog.counts(cursor, look.browse))
        finally:
            self.session.drop(cursor)

    def dry_run(self, run: Run) -> DryRun:
        return run_dry(self.session, run)

    def schema_version(self, version: Version) -> str:
        session = self.session
        cursor = session.cursor(version.version)
        try:
            return session.facts.version(cursor)
        finally:
            session.drop(cursor)

    def has_triggers(self, version: Version) -> bool:
        cursor = self.session.cursor(version.version)
        try:
            return bool(cursor.execute("FROM duckdb_triggers() LIMIT 1").fetchall())
        finally:
            self.session.drop(cursor)

    def known(self) -> dict[str, Definition]:
        """How the files of a folder are read; nothing for any other database."""
        session = self.session
        return session.known if isinstance(session, FolderSession) else {}

    def _running(self) -> Execution:
        if self._execution is None:
            raise TidegateError(Code.SOURCE_NOT_CONNECTED, "There is no statement under way.")
        return self._execution

    def _tables(self, text: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(duckdb.get_table_names(text)))
        except duckdb.Error:
            return ()


def _look_at_files(
    session: FolderSession, cursor: duckdb.DuckDBPyConnection, browse: Browse
) -> Metadata:
    found = session.describe(catalog.catalog(cursor, browse, session.facts))
    if browse.aspect == "catalog":
        return Metadata(catalog=found)
    if browse.aspect == "ddl":
        return Metadata(ddl=session.ddl(found))
    return Metadata(counts=session.counts(cursor, browse, found))


def main() -> None:
    """Serve the gate at the other end of standard input and output."""
    serve(Worker())


if __name__ == "__main__":
    main()
