"""Commands of a PostgreSQL session that the edge answers itself: settings, transactions, cursors,
COPY. Pure values; `command_reader` reads them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tidegate.model.transactions import TransactionModes


class Begin(NamedTuple):
    """BEGIN or START TRANSACTION; `tag` is the one of them."""

    modes: TransactionModes = TransactionModes()
    tag: str = "BEGIN"


class End(NamedTuple):
    """COMMIT or ROLLBACK. `chain` begins the next transaction at once."""

    commit: bool
    chain: bool = False


class Savepoint(NamedTuple):
    """SAVEPOINT, RELEASE or ROLLBACK TO."""

    word: Literal["SAVEPOINT", "RELEASE", "ROLLBACK"]
    name: str


class Characteristics(NamedTuple):
    """SET TRANSACTION, or SET SESSION CHARACTERISTICS for all later ones (`session`)."""

    session: bool
    modes: TransactionModes


class SetValue(NamedTuple):
    """SET name TO value; None is DEFAULT. `local`: until the transaction ends."""

    name: str
    value: str | None
    local: bool = False


class Show(NamedTuple):
    """SHOW name."""

    name: str


class Reset(NamedTuple):
    """RESET name; `all` for every setting."""

    name: str


class Discard(NamedTuple):
    """DISCARD ALL, PLANS, SEQUENCES, TEMP or TEMPORARY."""

    what: str


class Deallocate(NamedTuple):
    """DEALLOCATE of a prepared statement; None for all."""

    name: str | None


class CloseCursor(NamedTuple):
    """CLOSE of a cursor; None for all."""

    name: str | None


class Declare(NamedTuple):
    """DECLARE name CURSOR FOR text. `hold`: it outlives the transaction."""

    name: str
    text: str
    hold: bool


class Fetch(NamedTuple):
    """FETCH or MOVE forward; `rows` None is all."""

    name: str
    rows: int | None
    move: bool


class CopyOut(NamedTuple):
    """COPY (text) TO STDOUT, or of a table's columns, as `text`."""

    text: str
    form: Literal["text", "csv", "binary"]
    header: bool
    delimiter: str
    null: str


class Refused(NamedTuple):
    """A command that is understood and not carried out, and why."""

    sqlstate: str
    message: str
    hint: str


class Unlisten(NamedTuple):
    """UNLISTEN, which has nothing to end: there are no notifications."""


class UnlockAll(NamedTuple):
    """SELECT pg_advisory_unlock_all(), which drivers send between two uses: nothing is locked."""


class Setting(NamedTuple):
    """One column of a SetConfig: `value` None shows the setting, else it is set first; `local`:
    until the block ends."""

    label: str
    name: str
    value: str | None
    local: bool = False


class SetConfig(NamedTuple):
    """SELECT of nothing but current_setting('…') and set_config('…', '…', …), as drivers send
    it after they have connected."""

    settings: tuple[Setting, ...]


Command = (
    Begin
    | End
    | Savepoint
    | Characteristics
    | SetValue
    | Show
    | Reset
    | Discard
    | Deallocate
    | CloseCursor
    | Declare
    | Fetch
    | CopyOut
    | Refused
    | Unlisten
    | UnlockAll
    | SetConfig
)
