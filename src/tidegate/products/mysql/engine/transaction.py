"""What a session is set to: its variables, and the role of the caller it works for.

The SQL mode keeps what is about values: under any other a text might mean something else than the
judge reads in it. A role adds its privileges to the account's own, so the account should have next
to none. MariaDB keeps the role when a connection is reset, so it is put back by name.
"""

from __future__ import annotations

import re

import msgspec

from tidegate.engines.common.roles import role_of
from tidegate.errors import Code, TidegateError
from tidegate.model.source_settings import RunAs
from tidegate.model.sources import Identity
from tidegate.products.mysql.engine.packets import Rows
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.scan import scan

_DIALECT = find("mysql")
_quote = _DIALECT.quote
_VARIABLE = re.compile(r"[A-Za-z0-9_.$]{1,64}")


def assumption(identity: Identity) -> list[bytes]:
    """The statements that make a session the caller. Raises: TidegateError POLICY_IDENTITY."""
    texts: list[bytes] = []
    role = role_of(identity)
    if role is not None:
        texts.append(f"SET ROLE {_quote(role)}".encode())
    if identity.variables:
        values = [
            f"@{_quote(name)} = _utf8mb4 X'{value.encode().hex()}'"
            for name, value in identity.variables
        ]
        texts.append(f"SET {', '.join(values)}".encode())
    return texts


def return_home(role: str | None, *, mariadb: bool) -> bytes:
    """The statement that gives a session the role back that it came with."""
    if not mariadb:
        return b"SET ROLE DEFAULT"
    return b"SET ROLE NONE" if role is None else f"SET ROLE {_quote(role)}".encode()


def check_run_as(run_as: RunAs | None) -> None:
    """Raises: TidegateError CONFIG_INVALID for what cannot be the name of a variable."""
    for name, _ in run_as.variables if run_as is not None else ():
        if _VARIABLE.fullmatch(name) is None:
            raise TidegateError(
                Code.CONFIG_INVALID,
                f"`run_as.variables` names `{name}`, which is no name of a user variable.",
                hint="Use letters, digits, `_`, `.` and `$`, without the @.",
            )


def sets_variables(text: str) -> bool:
    """Whether a change might set a user variable, and so claim to be another user."""
    try:
        tokens = scan(text, _DIALECT)
    except Refusal:
        return True
    keys = [token.key for token in tokens]
    kinds = [token.kind for token in tokens]
    return ":=" in keys or any(
        key == "INTO" and kind == "param" for key, kind in zip(keys, kinds[1:], strict=False)
    )


ARRIVAL = (
    b"SELECT @@sql_mode, @@version, @@version_comment, DATABASE(),"
    b" CONCAT_WS(':', @@hostname, @@port, @@datadir)"
)
"""Its row is what `arrived` reads."""

CHECK = b"""SHOW SESSION VARIABLES WHERE Variable_name IN
  ('sql_mode', 'tx_read_only', 'transaction_read_only', 'autocommit', 'character_set_client',
   'max_statement_time', 'max_execution_time')"""
"""Its rows are what `Setting.check` reads."""

_KEPT_MODES = frozenset(
    """
    ALLOW_INVALID_DATES ERROR_FOR_DIVISION_BY_ZERO IGNORE_BAD_TABLE_OPTIONS NO_AUTO_CREATE_USER
    NO_AUTO_VALUE_ON_ZERO NO_DIR_IN_CREATE NO_ENGINE_SUBSTITUTION NO_FIELD_OPTIONS NO_KEY_OPTIONS
    NO_TABLE_OPTIONS NO_UNSIGNED_SUBTRACTION NO_ZERO_DATE NO_ZERO_IN_DATE ONLY_FULL_GROUP_BY
    PAD_CHAR_TO_FULL_LENGTH REAL_AS_FLOAT SIMULTANEOUS_ASSIGNMENT STRICT_ALL_TABLES
    STRICT_TRANS_TABLES TIME_ROUND_FRACTIONAL TIME_TRUNCATE_FRACTIONAL TRADITIONAL
    """.split()  # noqa: SIM905 - a paragraph of words is easier to read and to change
)
"""SQL modes of the server that a session keeps: they are about values. Under any other, known or
not, a text might mean something else than the judge reads in it."""

_SECRET = frozenset({"mysql", "performance_schema", "sys"})
"""Databases in which an unqualified name would be one of the server's own tables."""


class SessionVariables(msgspec.Struct, frozen=True):
    """What a session found where it came; `modes` is the SQL mode it is given, `identity` what the
    server tells itself from others by."""

    database: str | None = None
    modes: str = ""
    server_version: str = ""
    mariadb: bool = False
    identity: str = ""

    @property
    def commands(self) -> tuple[bytes, ...]:
        """What sets a connection up."""
        return (
            b"SET NAMES utf8mb4",
            f"SET SESSION sql_mode = '{self.modes}', time_zone = '+00:00', autocommit = 1,"
            " sql_auto_is_null = 0, sql_select_limit = DEFAULT, lc_messages = 'en_US'".encode(),
            b"SET SESSION TRANSACTION READ ONLY",
        )

    def limit(self, timeout_ms: int) -> bytes:
        """What sets the time limit of a statement."""
        if self.mariadb:
            return f"SET max_statement_time = {timeout_ms / 1000:.3f}".encode()
        return f"SET max_execution_time = {timeout_ms}".encode()

    def check(self, found: Rows) -> float:
        """Check that the server applied the settings. Returns the account's own time limit of
        statements in seconds; 0: none. Raises: TidegateError UNSUPPORTED if they are not."""
        values = {str(name).lower(): str(value) for name, value in found}
        read_only = values.get("transaction_read_only") or values.get("tx_read_only")
        if (
            read_only != "ON"
            or set(values.get("sql_mode", "?").split(",")) != set(self.modes.split(","))
            or values.get("autocommit") != "ON"
            or values.get("character_set_client") != "utf8mb4"
        ):
            raise TidegateError(
                Code.UNSUPPORTED,
                "The server overrides sql_mode or read-only, on which the gate relies.",
                hint="Remove what changes them: the server's init_connect, or a proxy.",
            )
        if self.mariadb:
            return float(values.get("max_statement_time", 0))
        return float(values.get("max_execution_time", 0)) / 1000


def arrived(found: Rows, greeting: str) -> SessionVariables:
    """The setting of a connection. Raises: TidegateError SOURCE_URL for a database of the
    server's."""
    ((modes, version, comment, database, server),) = found
    if is_secret(database):
        raise TidegateError(
            Code.SOURCE_URL,
            f"The database `{database}` belongs to the server and cannot be a source.",
            hint="Name the application's database, or none.",
        )
    mariadb = "MariaDB" in greeting or "MariaDB" in comment
    kept = [mode for mode in modes.split(",") if mode in _KEPT_MODES]
    name = "MariaDB" if mariadb else "MySQL"
    return SessionVariables(
        database, ",".join(kept), f"{name} {version}", mariadb, f"mysql:{server}"
    )


def is_secret(database: str | None) -> bool:
    """Whether a database holds the server's own tables."""
    return database is not None and database.lower() in _SECRET
