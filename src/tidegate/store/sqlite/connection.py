"""Opens the SQLite state file: private, ours, and with this version's tables.

Migrations are numbered plain-SQL scripts; all that are missing are applied in one transaction. A
file of a newer version is refused, and so is one that was made before the first release.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import apsw

from tidegate.errors import Code, TidegateError
from tidegate.store import disk_reserve
from tidegate.store.disk_reserve import DiskReserve
from tidegate.store.held_rows import Dialect
from tidegate.store.versions import StateMoved
from tidegate.system.disks import allocate, free_bytes, try_writing
from tidegate.system.private_files import open_file

APPLICATION_ID = 0x54474442
"""Marks the file as ours in its header: `TGDB`."""

_UNRELEASED_ID = 0x54474154
"""The mark of files that were made before the first release: `TGAT`."""

MOVED_ID = 0x5447_4D56
"""Marks the file of a state that was moved: `TGMV`."""

NEWEST = 13
"""The number of the last script, so that a start needs no look into the directory."""

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
"""How the system refuses to open a file for writing."""

_SCRIPTS = Path(__file__).parent.parent / "migrations"
_BUSY_MS = 5_000
_WAL_TRIES = 250
_RESERVED = 131_072
_ROOM = 262_144
"""Bytes that must be free for the write-ahead log to grow."""


def scripts() -> list[Path]:
    """The migrations in the order in which they apply: `0001_start.sql`, ..."""
    return sorted(_SCRIPTS.glob("[0-9][0-9][0-9][0-9]_*.sql"))


def prepare(path: Path) -> None:
    """Make the file if it is not there, mode 0600, and bring its tables up to date.

    A file that cannot be written, such as one on a disk that is mounted for reading, is left as it
    is: what only reads works there. Raises: TidegateError STATE_FAILED for a file that is foreign
    or of another version; apsw.Error and OSError for one that cannot be opened.
    """
    # Not left to SQLite, which would let others read it. The -wal and -shm files get its mode.
    try:
        os.close(open_file(path, "read and write"))
    except OSError as error:
        if error.errno not in READ_ONLY or not path.exists():
            raise
    connection = connect(path)
    try:
        with reading(connection):
            current = read_version(connection, path) == NEWEST
        if not current and connection.readonly("main"):
            raise _refused(
                f"`{path}` is of an earlier version of Tidegate, and cannot be written to bring "
                "it up to date.",
                hint="Make its directory writable, and run any command once.",
            )
        if not current:
            _migrate(connection, path)
    finally:
        connection.close()


def connect(path: Path, synchronous: Literal["FULL", "NORMAL"] = "FULL") -> apsw.Connection:
    """A connection to a file that `prepare` has seen. NORMAL may lose the last moments before a
    power cut; neither loses anything when the process dies."""
    if os.access(path, os.W_OK):
        connection = apsw.Connection(os.fspath(path), apsw.SQLITE_OPEN_READWRITE)
    else:
        connection = connect_for_reading(path)
    connection.set_busy_timeout(_BUSY_MS)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection


def connect_for_reading(path: Path) -> apsw.Connection:
    """A connection to a file that cannot be written. SQLite needs a write-ahead log to read what
    others write. Where the file has none, no process writes, and `immutable` declares that."""
    uri = path.absolute().as_uri() + "?mode=ro"
    if not path.with_name(f"{path.name}-wal").exists():
        uri += "&immutable=1"
    return apsw.Connection(uri, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def reserve_room(connection: apsw.Connection, path: Path) -> bool:
    """Give the write-ahead log the space for some changes now, while there is some: `make_room`
    uses it. SQLite ignores what follows the last change.

    Returns whether the log has it. Raises: apsw.Error if the database cannot be opened.
    """
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # so that there is a log
    try:
        with open(f"{path}-wal", "r+b", buffering=0) as log:  # noqa: PTH123 - on the path of changes
            size = os.fstat(log.fileno()).st_size
            return size >= _RESERVED or allocate(log.fileno(), 0, _RESERVED)
    except OSError:
        return False


def make_room(connection: apsw.Connection, path: Path, reserve: DiskReserve | None = None) -> None:
    """Where the disk is full, let the write-ahead log begin again. It then overwrites itself and
    needs no space, so that a right can still be taken away. What it needs at first, and what the
    database needs to grow, is given up by `reserve`."""
    if free_bytes(path) >= _ROOM:
        if reserve is not None:
            reserve.fill_again()
        return
    while not _restart_log(connection, path):
        if reserve is None or not reserve.release():
            return


def _restart_log(connection: apsw.Connection, path: Path) -> bool:
    """Whether the log begins again and has its space."""
    try:
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        return reserve_room(connection, path)
    except apsw.Error:
        return False


@contextmanager
def transaction(connection: apsw.Connection) -> Generator[None, None, None]:
    """Write all of it or nothing. Takes the write lock at once, where waiting for it works.

    Raises: TidegateError STATE_FAILED if the state was moved elsewhere since it was opened.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        check_here(connection)
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some failures, such as a full disk, have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


Settle = Callable[[apsw.Connection, bool], None]
"""Is given the connection at the end of a transaction, and whether that was kept."""


@contextmanager
def settled(connection: apsw.Connection, settle: Settle) -> Generator[None, None, None]:
    """A `transaction` at whose end `settle` is called."""
    is_kept = False
    try:
        with transaction(connection):
            yield
        is_kept = True
    finally:
        settle(connection, is_kept)


@contextmanager
def reading(connection: apsw.Connection) -> Generator[None, None, None]:
    """See one state of the file throughout, whatever other processes write meanwhile."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def mark_moved(connection: apsw.Connection, place: str) -> None:
    """Have the state be here no more, for all processes. Within a transaction."""
    connection.execute("CREATE TABLE moved (place TEXT NOT NULL) STRICT")
    connection.execute("INSERT INTO moved VALUES (?)", (place,))
    connection.execute(f"PRAGMA application_id = {MOVED_ID}")


def place_of_move(connection: apsw.Connection) -> str:
    """Where the state has moved; empty if it is here."""
    if connection.execute("PRAGMA application_id").get != MOVED_ID:
        return ""
    place: str = connection.execute("SELECT place FROM moved").get
    return place


def check_here(connection: apsw.Connection) -> None:
    """Raises: TidegateError STATE_FAILED if the state has moved."""
    if place := place_of_move(connection):
        raise StateMoved(place)


@contextmanager
def failures() -> Generator[None, None, None]:
    """Raise what SQLite and the file system report as STATE_FAILED."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise failed(error) from error


def is_full(error: Exception) -> bool:
    """Whether this is the refusal of a write for which the disk has no space."""
    if isinstance(error, OSError):
        return disk_reserve.is_full(error)
    if isinstance(error, apsw.IOError):
        # The shared memory of the log could not grow; elsewhere SQLite says that the disk is full.
        return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE
    return isinstance(error, apsw.FullError)


def failed(error: Exception) -> TidegateError:
    """The coded error of what SQLite or the file system says."""
    if isinstance(error, apsw.BusyError):
        return TidegateError(
            Code.STATE_FAILED,
            "Another process locks the state database.",
            hint="Retry in a moment.",
            retry_after_s=1.0,
        )
    if is_full(error):
        return TidegateError(
            Code.STATE_FAILED,
            "The state database cannot be written: its disk is full.",
            hint="Free some space on the disk of the state directory, then run it again.",
        )
    if isinstance(error, apsw.ReadOnlyError) or getattr(error, "errno", None) in READ_ONLY:
        return TidegateError(
            Code.STATE_FAILED,
            "The state database can be read only: its disk is mounted for reading, or it belongs "
            "to another account.",
            hint="Make the state directory writable for this account, or name another --state.",
        )
    return TidegateError(
        Code.STATE_FAILED, f"Reading or writing the state database failed: {error}."
    )


def _run(connection: Any, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(sql, values).fetchall()


DIALECT = Dialect(_run, "", "?", "", is_foreign=False)
"""How the seals of rows (`store/seals.py`) are read and written here. A transaction has the write
lock, so its rows need none."""


class StateConnection:
    """One connection to a prepared state file, opened when it is first needed. Safe to use from any
    thread. `reserve` is for changes that take rights away."""

    def __init__(
        self,
        path: Path,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        reserve: DiskReserve | None = None,
    ) -> None:
        self._path = path
        self._reserve = reserve
        self._synchronous: Literal["FULL", "NORMAL"] = synchronous
        self._lock = Lock()
        self._connection: apsw.Connection | None = None
        self._closed = False
        self.settle: Settle = lambda _connection, _is_kept: None
        """Is called at the end of each transaction."""

    @contextmanager
    def reading(self) -> Generator[apsw.Connection, None, None]:
        """The connection, for statements that only read: they do not wait for the write lock.

        Raises: TidegateError STATE_FAILED.
        """
        with self._lock, failures():
            if self._closed:
                raise apsw.ConnectionClosedError("the state is closed")
            if self._connection is None:
                self._connection = connect(self._path, self._synchronous)
                self._connection.execute("PRAGMA foreign_keys = ON")
            yield self._connection

    @contextmanager
    def changing(self, *, uses_reserve: bool = False) -> Generator[apsw.Connection, None, None]:
        """A transaction: all of it or nothing. Raises: TidegateError STATE_FAILED.

        `uses_reserve` is for what must work on a full disk, and what no caller can cause often.
        """
        with self.reading() as connection:
            if uses_reserve or self._synchronous == "FULL":
                make_room(connection, self._path, self._reserve if uses_reserve else None)
            with settled(connection, self.settle):
                yield connection

    def try_writing(self) -> None:
        """See that a change could be written. Nothing is written to the file, whose space on a full
        disk is for those who take rights away. Raises: TidegateError STATE_FAILED."""
        with self.reading() as connection:
            if free_bytes(self._path) < _ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            try_writing(self._path.parent)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _migrate(connection: apsw.Connection, path: Path) -> None:
    _use_wal(connection)
    with transaction(connection):
        # Another process may have been faster between the look and the lock.
        done = read_version(connection, path)
        for script in scripts()[done:]:
            connection.execute(script.read_text(encoding="utf-8"))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {NEWEST}")


def read_version(connection: apsw.Connection, path: Path) -> int:
    """The version of a file, 0 if it is empty. Within a transaction: between two looks another
    process may have made the tables. Raises: TidegateError STATE_FAILED for a file that this
    program cannot use, or whose state has moved."""
    try:
        application: int = connection.execute("PRAGMA application_id").get
        version: int = connection.execute("PRAGMA user_version").get
        tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").get
    except apsw.NotADBError:
        raise _refused(f"`{path}` is not a state file.") from None
    if application == _UNRELEASED_ID:
        raise _refused(
            f"`{path}` was made before the first release of Tidegate, and is not carried over.",
            hint="Use another state directory, and add the sources and tokens again.",
        )
    if application == MOVED_ID:
        check_here(connection)
    if application != APPLICATION_ID and (application or version or tables):
        raise _refused(f"`{path}` is a database of another program.")
    if application == APPLICATION_ID and version < 1:
        raise _refused(f"`{path}` is a state file of an unknown version.")
    if version > NEWEST:
        raise _refused(
            f"`{path}` was written by a newer version of Tidegate.",
            hint="Upgrade Tidegate, or use another state directory.",
        )
    return version


def _use_wal(connection: apsw.Connection) -> None:
    """Switch to write-ahead logging; SQLite does not wait for others here, so we do."""
    for attempt in range(_WAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except apsw.BusyError:
            if attempt == _WAL_TRIES - 1:
                raise
            time.sleep(0.02)


def _refused(message: str, hint: str = "Use another state directory.") -> TidegateError:
    return TidegateError(Code.STATE_FAILED, message, hint=hint)
