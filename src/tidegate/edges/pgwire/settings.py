"""The settings of a session: what clients set, what they may read, and what is reported to them.

Those that begin with `tidegate.` are ours. A server that passes its callers' statements on to this
one reads of `tidegate.version` and `tidegate.dialect` what it speaks with, and sets the others, but
for `tidegate.confirm`, by which anyone confirms the next statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tidegate import __version__
from tidegate.edges.pgwire.errors import refused
from tidegate.model.transactions import Isolation
from tidegate.surfaces.confirmation import PHRASE

_DEFAULTS = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "off",
    "search_path": "",
    "server_encoding": "UTF8",
    "server_version": "17.0",
    "server_version_num": "170000",
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "tidegate.confirm": "",
    "tidegate.dialect": "",
    "tidegate.max_rows": "0",
    "tidegate.on_behalf_of": "",
    "tidegate.plan": "",
    "tidegate.version": __version__,
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
}

_REPORTED = {
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "search_path": "search_path",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "session_authorization": "session_authorization",
    "tidegate.dialect": "tidegate.dialect",
    "tidegate.version": "tidegate.version",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
}
"""What PostgreSQL reports by itself, under the names by which it does."""

_FIXED = {
    "bytea_output": {"hex"},
    "client_encoding": {"utf8", "utf-8", "unicode", "sql_ascii"},
    "integer_datetimes": {"on"},
    "intervalstyle": {"postgres"},
    "standard_conforming_strings": {"on", "true", "1"},
    "row_security": {"on", "off"},
}
"""Settings on which the form of values depends, and what they may be set to. psql asks for
SQL_ASCII where no language is set: PostgreSQL converts nothing then, and what is here is UTF8."""

_READ_ONLY = frozenset(
    {
        "integer_datetimes",
        "is_superuser",
        "max_identifier_length",
        "server_encoding",
        "server_version",
        "server_version_num",
        "session_authorization",
        "tidegate.dialect",
        "tidegate.version",
    }
)
_MOST = 500
_MOST_MARKS = 1_000
_LONGEST = 10_000
"""Characters of a setting and its name."""
_LONGEST_TOGETHER = 100_000
"""Characters of the names and values of all settings."""
_LONGEST_NAME = 63
"""What PostgreSQL keeps of a name."""
_LONGEST_CALLER = 256
_MOST_DIGITS = 9
_OF_PROXIES = ("tidegate.on_behalf_of", "tidegate.plan")
_ON = frozenset({"on", "true", "yes", "1"})
_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


ISOLATIONS: dict[str, Isolation] = {
    "read uncommitted": "read uncommitted",
    "read committed": "read committed",
    "repeatable read": "repeatable read",
    "serializable": "serializable",
}


class _Block:
    """The values before a block, those after it if it is committed, and both at its savepoints."""

    __slots__ = ("after", "before", "marks")

    def __init__(self, before: dict[str, str], after: dict[str, str]) -> None:
        self.before = before
        self.after = after
        self.marks: list[tuple[str, dict[str, str], dict[str, str]]] = []


class SessionSettings:
    """The settings of one session: PostgreSQL's defaults, and what its client has set."""

    def __init__(
        self, user: str, server_version: str | None, dialect: str = "", *, is_proxy: bool = False
    ) -> None:
        """`dialect` is the source's; `is_proxy` that the client may speak for other callers."""
        self._is_proxy = is_proxy
        self._defaults = dict(_DEFAULTS)
        self._defaults["tidegate.dialect"] = dialect
        self._defaults["session_authorization"] = user
        if server_version is not None:
            version = _VERSION.search(server_version)
            if version is not None:
                self._defaults["server_version"] = version[0]
                self._defaults["server_version_num"] = _version_number(version[0])
        self._values = dict(self._defaults)
        self._block: _Block | None = None
        self._is_confirmed = False

    def reported(self) -> Iterator[tuple[str, str]]:
        """What is reported when a session begins."""
        for name, shown in _REPORTED.items():
            yield shown, self._values.get(name, "off")

    def get(self, name: str) -> str | None:
        """The value of a setting, None if there is none of that name."""
        return self._values.get(name.lower())

    def items(self) -> list[tuple[str, str]]:
        """All settings, by name."""
        return sorted(self._values.items())

    def begin_block(self) -> None:
        """A transaction block begins: what is set in it is undone with it."""
        self._block = _Block(dict(self._values), dict(self._values))

    def end_block(self, *, commit: bool) -> list[tuple[str, str]]:
        """The block has ended: what was set LOCAL ends with it, and the rest if it was rolled back.
        Returns what is to be reported."""
        block, self._block = self._block, None
        return [] if block is None else self._restore(block.after if commit else block.before)

    def mark(self, name: str) -> None:
        """A savepoint was set. Raises: TidegateError 54000."""
        block = self._block
        if block is not None:
            if len(block.marks) >= _MOST_MARKS:
                raise refused("54000", f"A block has {_MOST_MARKS:,} savepoints at most.")
            block.marks.append((name, dict(self._values), dict(block.after)))

    def release(self, name: str) -> None:
        """A savepoint, and all after it, were let go."""
        block, place = self._block, self._mark_of(name)
        if block is not None and place is not None:
            del block.marks[place:]

    def go_back(self, name: str) -> list[tuple[str, str]]:
        """What was set since the savepoint is undone. Returns what is to be reported."""
        block, place = self._block, self._mark_of(name)
        if block is None or place is None:
            return []
        _, values, after = block.marks[place]
        del block.marks[place + 1 :]
        block.after = dict(after)
        return self._restore(dict(values))

    def has_mark(self, name: str) -> bool:
        """Whether there is a savepoint of that name."""
        return self._mark_of(name) is not None

    def _mark_of(self, name: str) -> int | None:
        marks = [] if self._block is None else self._block.marks
        return max([at for at, mark in enumerate(marks) if mark[0] == name], default=None)

    def _restore(self, values: dict[str, str]) -> list[tuple[str, str]]:
        changed = [
            (shown, values[name])
            for name, shown in _REPORTED.items()
            if name in values and self._values.get(name) != values[name]
        ]
        self._values = values
        return changed

    def _keep(self, key: str, value: str, *, local: bool) -> None:
        self._values[key] = value
        if self._block is not None and not local:
            self._block.after[key] = value

    def set(self, name: str, value: str | None, *, local: bool = False) -> tuple[str, str] | None:
        """Set a setting, with `local` until the block ends; None sets its default. Returns what is
        to be reported.

        The time zone stays UTC: values with a time zone travel with their offset.
        Raises: TidegateError with SQLSTATE 42501, 42704, 55P02 or 22023.
        """
        key = name.lower()
        if len(key) + len(value or "") > _LONGEST:
            raise refused("22023", f'The value of "{key[:80]}" is too long.')
        others = sum([len(each) + len(kept) for each, kept in self._values.items() if each != key])
        if value is not None and others + len(key) + len(value) > _LONGEST_TOGETHER:
            raise refused(
                "53400", f"The settings of a session have {_LONGEST_TOGETHER:,} characters at most."
            )
        if key not in self._values:
            if "." in key and value is not None:  # a name of the client's own, as PostgreSQL has
                if len(self._values) >= _MOST:
                    raise refused("53400", f"A session has {_MOST} settings at most.")
                self._keep(key, value, local=local)
                return None
            raise refused("42704", f'Unrecognized configuration parameter "{name[:80]}".')
        if key in _OF_PROXIES and not self._is_proxy:
            raise refused(
                "42501",
                f'Only a proxy may set "{key}", and the token of this login is none.',
                "The operator can make one: tidegate token create NAME --proxy.",
            )
        if key in _READ_ONLY:
            raise refused("55P02", f'The parameter "{key}" cannot be changed.')
        new = self._defaults[key] if value is None else value
        if key == "tidegate.confirm":
            self._confirm(new)
            return None
        new = self._checked(key, new)
        self._keep(key, new, local=local)
        shown = _REPORTED.get(key)
        return None if shown is None else (shown, new)

    def _checked(self, key: str, new: str) -> str:
        """The value as the setting has it from now on. Raises: TidegateError 22023."""
        fixed = _FIXED.get(key)
        if fixed is not None and new.lower() not in fixed:
            raise refused(
                "22023",
                f'The parameter "{key}" cannot be {new[:80]!r} here.',
                f"It stays {self._values[key]!r}.",
            )
        if key == "datestyle" and not new.lower().startswith("iso"):
            raise refused(
                "22023", "Dates are in ISO format here.", "Leave DateStyle as it is: ISO."
            )
        if key == "timezone":
            new = "UTC"
        elif key == "client_encoding":
            new = "UTF8"
        elif key == "application_name":
            new = new[:_LONGEST_NAME]
        elif key == "tidegate.on_behalf_of":
            new = new[:_LONGEST_CALLER]
        elif key == "tidegate.max_rows":
            if not new.isdecimal() or len(new) > _MOST_DIGITS:
                raise refused("22023", f'"{key}" is a number of rows; 0 is the server\'s most.')
        elif key.endswith("timeout"):
            milliseconds(new)
        elif key.endswith("read_only"):
            new = "on" if is_on(new) else "off"
        elif key.endswith("transaction_isolation"):
            new = new.lower()
            if new not in ISOLATIONS:
                raise refused("22023", f"There is no isolation level {new[:40]!r}.")
        return new

    def _confirm(self, phrase: str) -> None:
        """Confirm the next statement, or with an empty phrase no longer. Raises: TidegateError
        22023."""
        if phrase not in ("", PHRASE):
            raise refused(
                "22023",
                f'The parameter "tidegate.confirm" cannot be {phrase[:80]!r}.',
                f"It takes exactly {PHRASE!r}.",
            )
        self._is_confirmed = phrase == PHRASE

    def take_confirmation(self) -> bool:
        """Whether the statement that runs now was confirmed. The next one is not."""
        confirmed, self._is_confirmed = self._is_confirmed, False
        return confirmed

    def reset(self) -> list[tuple[str, str]]:
        """Set every default. Returns what is to be reported."""
        changed = [
            (shown, self._defaults[name])
            for name, shown in _REPORTED.items()
            if name in self._defaults and self._values[name] != self._defaults[name]
        ]
        self._values = dict(self._defaults)
        self._is_confirmed = False
        if self._block is not None:
            self._block.after = dict(self._defaults)
        return changed

    @property
    def isolation(self) -> Isolation | None:
        """The isolation level of blocks that name none; None for the database's own."""
        found = self._values["default_transaction_isolation"]
        return (
            None if found == self._defaults["default_transaction_isolation"] else ISOLATIONS[found]
        )

    @property
    def idle_in_transaction_s(self) -> float | None:
        """The client's `idle_in_transaction_session_timeout`; None for the server's limit."""
        found = milliseconds(self._values["idle_in_transaction_session_timeout"])
        return found / 1000 if found else None

    @property
    def reads_only(self) -> bool:
        """Whether the client asked that its transactions change nothing."""
        return self._values["default_transaction_read_only"] == "on"

    @property
    def timeout_s(self) -> float | None:
        """The client's `statement_timeout`; None for the server's default."""
        found = milliseconds(self._values["statement_timeout"])
        return found / 1000 if found else None

    @property
    def on_behalf_of(self) -> str:
        """The caller for whom a proxy speaks; empty if it names none."""
        return self._values["tidegate.on_behalf_of"]

    @property
    def plan(self) -> str:
        """The digest of the requests that were approved at the proxy; empty if there is none."""
        return self._values["tidegate.plan"]

    @property
    def max_rows(self) -> int:
        """How many rows of a result the client wants at most; 0: as many as the server gives."""
        return int(self._values["tidegate.max_rows"])

    @property
    def schema(self) -> str | None:
        """The first schema of the search path that is a name; None for the source's own.
        PostgreSQL always looks in `pg_catalog`, named or not."""
        for part in self._values["search_path"].split(","):
            name = part.strip().strip('"')
            if name and name not in ("$user", "pg_catalog"):
                return name
        return None


_VERSION = re.compile(r"\d+(?:\.\d+)*")


def is_on(text: str) -> bool:
    """Whether a text means that a setting is on."""
    return text.lower() in _ON


@lru_cache(maxsize=64)
def milliseconds(text: str) -> float:
    """A time as PostgreSQL writes it: `1500`, `30s`, `2min`. Raises: TidegateError 22023."""
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip()[len(digits) :].strip() or "ms"
    try:
        found = float(digits) * _UNITS_MS[unit]
    except (ValueError, KeyError):
        raise refused("22023", f"{text[:40]!r} is no time.", "Write it as in 30s.") from None
    if not 0 <= found <= 2**31:
        raise refused("22023", f"The time {text[:40]!r} is out of range.")
    return found


def _version_number(version: str) -> str:
    major, _, rest = version.partition(".")
    return f"{int(major) * 10_000 + int(rest.partition('.')[0] or 0)}"
