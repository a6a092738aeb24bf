"""The settings of a session: what clients set, what they may read, and what is reported to them.

Those that begin with `tidegate.` are ours. A server that passes its callers' statements on to this
one reads of `tidegate.version` and `tidegate.dialect` what it speaks with, and sets the others
except `tidegate.confirm`, by which anyone confirms the next statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.model.transactions import Isolation
from tidegate.products.pgwire.errors import refused
from tidegate.products.pgwire.setting_defaults import DEFAULTS, REPORTED
from tidegate.products.pgwire.setting_values import (
    MESSAGE_LEVELS,
    clean_name,
    milliseconds,
    shown_as,
)
from tidegate.sql.dialects import find
from tidegate.sql.name_lists import split_names
from tidegate.surfaces.confirmation import PHRASE

_PINNED = {"timezone": "UTC", "datestyle": "ISO, MDY", "row_security": "on"}
"""What a PostgreSQL source runs every statement with that says nothing else
(`engines.postgres.connection.PINNED`)."""
_APPLIED = (*_PINNED, "lock_timeout", "search_path")
"""What a PostgreSQL source runs the statements of a session with as the session has it."""

_FORGIVEN = frozenset({"timezone", "datestyle", "extra_float_digits", "intervalstyle"})
"""What drivers send at every login, of their own accord, and is no reason to refuse one where the
source is no PostgreSQL."""

_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "uct", "zulu", "universal", "z", "0"})
_PLAIN_STYLE = re.compile(r"iso(?:\s*,\s*(?:mdy|us|noneuro\w*))?|mdy|us", re.IGNORECASE)

_FIXED = {
    "bytea_output": {"hex"},
    "extra_float_digits": {"1", "2", "3"},
    "intervalstyle": {"postgres"},
    "standard_conforming_strings": {"on"},
    "row_security": {"on", "off"},
    "default_tablespace": {""},
    "default_table_access_method": {"heap"},
}
"""Settings on which the form of values depends, and what they may be set to."""

_READ_ONLY = frozenset(
    {
        "integer_datetimes",
        "is_superuser",
        "max_identifier_length",
        "max_index_keys",
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
_LONGEST_CALLER = 256
_MOST_DIGITS = 9
_OF_PROXIES = ("tidegate.on_behalf_of", "tidegate.plan")


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
        self,
        user: str,
        server_version: str | None,
        dialect: str = "",
        *,
        is_proxy: bool = False,
        arrived: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`dialect` is the source's; `is_proxy` that the client may speak for other callers.
        `arrived` is what the sessions of a PostgreSQL source's account begin with."""
        self._is_proxy = is_proxy
        self._is_postgres = bool(dialect) and find(dialect).is_postgres
        self._defaults = dict(DEFAULTS)
        self._defaults["tidegate.dialect"] = dialect
        self._defaults["session_authorization"] = user
        if server_version is not None:
            version = _VERSION.search(server_version)
            if version is not None:
                self._defaults["server_version"] = version[0]
                self._defaults["server_version_num"] = _version_number(version[0])
        if self._is_postgres:
            self._defaults["row_security"] = "on"
            for name, value in arrived:
                self._defaults[name.lower()] = value
            _, _, order = self._defaults["datestyle"].partition(", ")
            self._defaults["datestyle"] = f"ISO, {order or 'MDY'}"
        self._path = self._defaults["search_path"]
        self._lock_timeout = self._defaults["lock_timeout"]
        self._values = dict(self._defaults)
        self._block: _Block | None = None
        self._is_confirmed = False

    def reported(self) -> Iterator[tuple[str, str]]:
        """What is reported when a session begins."""
        for name, shown in REPORTED.items():
            yield shown, self._values.get(name, "off")

    def get(self, name: str) -> str | None:
        """The value of a setting, None if there is none of that name."""
        key = name.lower()
        if key == "transaction_read_only" and self._block is None and self.reads_only:
            return "on"  # each statement outside of a block is a transaction, which changes nothing
        if key == "transaction_isolation" and self._block is None:
            key = "default_transaction_isolation"
        return self._values.get(key)

    def items(self) -> list[tuple[str, str]]:
        """All settings, by name."""
        return sorted(self._values.items())

    @property
    def forgiven(self) -> frozenset[str]:
        """Settings that a startup message may ask for in vain: then their default holds, and the
        client is warned."""
        return frozenset() if self._is_postgres else _FORGIVEN

    def is_of_database(self, name: str) -> bool:
        """Whether the source's database says what a setting may be."""
        key = name.lower()
        if not self._is_postgres or "." in key:
            return False
        return key in _APPLIED or key not in self._values

    def applied(self) -> tuple[tuple[str, str], ...]:
        """What statements run with at a PostgreSQL source, where that is not what it does anyway:
        as (name, value)."""
        if not self._is_postgres:
            return ()
        values = self._values
        found = [
            (REPORTED.get(name, name), values[name])
            for name, own in _PINNED.items()
            if values[name] != own
        ]
        if values["lock_timeout"] != self._lock_timeout:
            found.append(("lock_timeout", values["lock_timeout"]))
        if values["search_path"] != self._path:
            found.append(("search_path", values["search_path"]))
        return tuple(found)

    def keep(self, name: str, value: str, *, local: bool = False) -> tuple[str, str] | None:
        """Keep what the source's database has taken, in its words. Returns what must be
        reported. Raises: TidegateError 22023."""
        if name == "datestyle" and not value.startswith("ISO"):
            raise refused(
                "22023",
                "Dates are in ISO format here.",
                "Leave DateStyle at ISO; its order may be set.",
            )
        self._keep(name, value, local=local)
        shown = REPORTED.get(name)
        return None if shown is None else (shown, value)

    def make_defaults(self) -> None:
        """What is set now is what RESET goes back to."""
        self._defaults = dict(self._values)

    def begin_block(self) -> None:
        """A transaction block begins: what is set in it is undone with it."""
        self._block = _Block(dict(self._values), dict(self._values))

    def end_block(self, *, commit: bool) -> list[tuple[str, str]]:
        """The block has ended: what was set LOCAL ends with it, and the rest if it was rolled back.
        Returns what must be reported."""
        block, self._block = self._block, None
        return [] if block is None else self._restore(block.after if commit else block.before)

    def fail_block(self) -> list[tuple[str, str]]:
        """A statement of the block has failed: what was set in it, or since its last savepoint, is
        undone there and then. Returns what must be reported."""
        block = self._block
        if block is None:
            return []
        return self._restore(dict(block.marks[-1][1] if block.marks else block.before))

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
        """What was set since the savepoint is undone. Returns what must be reported."""
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
            for name, shown in REPORTED.items()
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

        Where the source is no PostgreSQL the time zone stays UTC: values with a time zone travel
        with their offset.
        Raises: TidegateError with SQLSTATE 42501, 42704, 55P02 or 22023.
        """
        key = name.lower()
        self.check_size(key, value)
        if key not in self._values:
            if "." in key and self._is_postgres:
                raise refused(
                    "22023",
                    f'The parameter "{name[:80]}" cannot be set here: what reads it on the server,'
                    " such as a policy of rows, finds what the operator sets, not a caller.",
                    "Ask the operator to set it for each caller: `run_as.variables`.",
                )
            if "." in key and value is not None:  # a name of the client's own, as PostgreSQL has
                if len(self._values) >= _MOST:
                    raise refused("53400", f"A session has {_MOST} settings at most.")
                self._keep(key, value, local=local)
                return None
            raise refused("42704", f'Unrecognized configuration parameter "{name[:80]}".')
        if key in _OF_PROXIES and not self._is_proxy:
            raise refused(
                "42501",
                f'Only a proxy may set "{key}", and the token of this login is not of a proxy.',
                "The operator can make one: tidegate token create NAME --proxy.",
            )
        if key in _READ_ONLY:
            raise refused("55P02", f'The parameter "{key}" cannot be changed.')
        new = self._defaults[key] if value is None else value
        if value is None and key in _APPLIED:
            return self.keep(key, new, local=local)
        if key == "tidegate.confirm":
            self._confirm(new)
            return None
        new = self._checked(key, new)
        self._keep(key, new, local=local)
        shown = REPORTED.get(key)
        return None if shown is None else (shown, new)

    def check_size(self, key: str, value: str | None) -> None:
        """Raises: TidegateError 22023, 53400 for a name with a value that is too long."""
        if len(key) + len(value or "") > _LONGEST:
            raise refused("22023", f'The value of "{key[:80]}" is too long.')
        others = sum([len(each) + len(kept) for each, kept in self._values.items() if each != key])
        if value is not None and others + len(key) + len(value) > _LONGEST_TOGETHER:
            raise refused(
                "53400", f"The settings of a session have {_LONGEST_TOGETHER:,} characters at most."
            )

    def _checked(self, key: str, new: str) -> str:
        """The value as the setting has it from now on. Raises: TidegateError 22023."""
        new = shown_as(key, new)
        fixed = _FIXED.get(key)
        if fixed is not None and new not in fixed:
            raise refused(
                "22023",
                f'The parameter "{key}" cannot be {new[:80]!r} here.',
                f"It stays {self._values[key]!r}.",
            )
        if key == "datestyle":
            if _PLAIN_STYLE.fullmatch(new.strip()) is None:
                raise refused(
                    "22023",
                    f"DateStyle cannot be {new[:80]!r} here: this source reads dates by rules"
                    " of its own.",
                    "It stays 'ISO, MDY': write dates as 2026-01-31.",
                )
            new = "ISO, MDY"
        elif key == "timezone":
            if new.strip().lower() not in _UTC:
                raise refused(
                    "22023",
                    f"The time zone cannot be {new[:80]!r} here: this source computes in UTC.",
                    "It stays 'UTC': convert moments in the client.",
                )
            new = "UTC"
        elif key == "lock_timeout":
            if milliseconds(new):
                raise refused(
                    "22023",
                    "This source has no time limit of its own for locks.",
                    "Set statement_timeout, which covers the wait for locks.",
                )
            new = "0"
        elif key == "search_path" and len(self._named(new)) > 1:
            raise refused(
                "22023",
                f"This source searches for tables in one schema, and search_path names several:"
                f" {new[:80]}.",
                "Name one, and write the others before their tables.",
            )
        elif key == "application_name":
            new = clean_name(new, int(self._values["server_version_num"]))
        elif key == "tidegate.on_behalf_of":
            new = new[:_LONGEST_CALLER]
        elif key == "tidegate.max_rows" and not (new.isdecimal() and len(new) <= _MOST_DIGITS):
            raise refused("22023", f'"{key}" is a number of rows; 0 is the server\'s most.')
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
        """Set every default. Returns what must be reported."""
        changed = [
            (shown, self._defaults[name])
            for name, shown in REPORTED.items()
            if name in self._defaults and self._values[name] != self._defaults[name]
        ]
        self._values = dict(self._defaults)
        self._is_confirmed = False
        if self._block is not None:
            self._block.after = dict(self._defaults)
        return changed

    @property
    def isolation(self) -> Isolation | None:
        """The isolation level of blocks that name none, and of statements outside of them; None for
        the database's own."""
        found = self._values["default_transaction_isolation"]
        return None if found == DEFAULTS["default_transaction_isolation"] else ISOLATIONS[found]

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

    def shows(self, severity: str) -> bool:
        """Whether the client wants messages of a severity (`client_min_messages`). INFO goes to
        every client."""
        asked, word = self._values["client_min_messages"], severity.lower()
        least = MESSAGE_LEVELS.index("notice" if asked == "info" else asked)
        return word not in MESSAGE_LEVELS or MESSAGE_LEVELS.index(word) >= least

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
        path = self._values["search_path"]
        if self._is_postgres and path == self._path:
            return None
        return next(iter(self._named(path)), None)

    def _named(self, path: str) -> list[str]:
        names = [each.name for each in split_names(path)]
        found = [name for name in names if name not in ("$user", "pg_catalog")]
        # Clients name PostgreSQL's own schema for tables after another one.
        return found[:1] + [name for name in found[1:] if self._is_postgres or name != "public"]


_VERSION = re.compile(r"\d+(?:\.\d+)*")


def _version_number(version: str) -> str:
    major, _, rest = version.partition(".")
    return f"{int(major) * 10_000 + int(rest.partition('.')[0] or 0)}"
