"""Tokens in files: an operator, or what deploys the server, writes them; the server only reads.

A file is YAML or JSON, of the form that such servers have:

    tokens:
      ci:
        hash: 9f86d081884c7d65...    # SHA-256 of the token, 64 hexadecimal digits
        expires_at: 2027-01-01T00:00:00Z
        database: shop

`annotation` and `created_at` may be there as well; `scope`, `sources`, `tags` and `tables` are
ours. Without a scope a token only reads. The file is read again when it has changed; while it
cannot be used, no token of it is valid.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

from tidegate.config.errors import invalid
from tidegate.config.file_permissions import require_private_file
from tidegate.config.loading import parse_yaml
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.store.records import TokenEntry
from tidegate.system.file_rights import Stamp, is_open_to_others, stamp_of

logger = logging.getLogger("tidegate.identity")

Note = Callable[[str, Mapping[str, str]], None]
"""Puts on record what is about to be done: (name, details). Raises: TidegateError."""

ID_PREFIX = "file_"
"""What the id of such a token's actor starts with."""

_HASH = r"[0-9a-fA-F]{64}"
_KEYS = frozenset(
    {
        "hash", "expires_at", "annotation", "created_at", "database",
        "scope", "sources", "tags", "tables",
    }
)  # fmt: skip
_MOST_BYTES = 16 * 1024 * 1024


class TokenFiles:
    """The tokens in the files at `paths`, as they are now.

    `check` says whether a token may have a name and use tables; it raises TidegateError. `note`
    goes before what a file gives counts.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        check: Callable[[str, Collection[str]], None],
        note: Note = lambda name, details: None,
        accounts: Collection[str] = (),
    ) -> None:
        self._paths = tuple(paths)
        self._check = check
        self._note = note
        self._accounts = accounts
        self._seen: dict[Path, Stamp] = {}
        self._tokens: dict[Path, dict[bytes, TokenEntry]] = {}
        self._generation = 0
        self.problems: dict[str, str] = {}
        """What is wrong with a file now, by its path."""

    def load(self) -> None:
        """Read every file, whether it has changed or not. Raises: TidegateError CONFIG_INVALID for
        the first that cannot be used, AUDIT_UNAVAILABLE."""
        for path in self._paths:
            self._seen[path] = stamp_of(path)
            self._replace(path, self._read(path))

    def generation(self) -> int:
        """A number that grows with every change of a file. Checks the files: microseconds."""
        for path in self._paths:
            stamp = stamp_of(path)
            if path not in self._seen or stamp != self._seen[path]:
                self._seen[path] = stamp
                self._reload(path)
        return self._generation

    def by_digest(self, digest: bytes) -> TokenEntry | None:
        """The token with this SHA-256, also one that has expired."""
        self.generation()
        for tokens in self._tokens.values():
            if digest in tokens:
                return tokens[digest]
        return None

    def entries(self) -> tuple[TokenEntry, ...]:
        """Every token of every file."""
        self.generation()
        return tuple(entry for tokens in self._tokens.values() for entry in tokens.values())

    def file_of(self, name: str) -> Path | None:
        """The file that has a token of this name."""
        self.generation()
        for path, tokens in self._tokens.items():
            if any(entry.name == name for entry in tokens.values()):
                return path
        return None

    def _reload(self, path: Path) -> None:
        """Take what the file holds now, or nothing. Never raises."""
        try:
            tokens = self._read(path)
        except TidegateError as error:
            if self.problems.get(str(path)) != error.message:
                logger.error("the tokens of a file are refused: %s", error.message)
            self._replace(path, {})
            self.problems[str(path)] = error.message
            if error.code is Code.AUDIT_UNAVAILABLE:
                self._seen.pop(path)  # the file is good: read it again
        else:
            self._replace(path, tokens)

    def _replace(self, path: Path, tokens: dict[bytes, TokenEntry]) -> None:
        self._tokens[path] = tokens
        self.problems.pop(str(path), None)
        self._generation += 1

    def _read(self, path: Path) -> dict[bytes, TokenEntry]:
        """The tokens of a file by their SHA-256. Raises: TidegateError CONFIG_INVALID."""
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                content = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise invalid(
                f"Cannot read the token file `{path}`: {error.strerror}.",
                hint="Check the path and who may read it.",
            ) from None
        if is_open_to_others(status):
            raise invalid(
                f"The token file `{path}` is open to other accounts.",
                hint=f"Run `chmod 600 {path}`.",
            )
        require_private_file(path, self._accounts)
        if len(content) > _MOST_BYTES:
            raise invalid(f"The token file `{path}` is larger than {_MOST_BYTES:,} bytes.")
        tokens = self._parse(path, content)
        words = {"path": str(path), "tokens": " ".join(entry.name for entry in tokens.values())}
        self._note("token_file.read", words)
        return tokens

    def _parse(self, path: Path, content: bytes) -> dict[bytes, TokenEntry]:
        parsed = parse_yaml(content.decode("utf-8", "replace"), f"the token file `{path}`")
        listed = _table(parsed, path, "the file")
        unknown = sorted(str(name) for name in listed if name != "tokens")
        if unknown:
            raise _wrong(path, f"has `{unknown[0][:40]}` where only `tokens` can be")
        tokens: dict[bytes, TokenEntry] = {}
        for name, fields in _table(listed.get("tokens") or {}, path, "`tokens`").items():
            digest, entry = self._entry(path, str(name), fields)
            if digest in tokens:
                raise _wrong(path, f"has the same hash for two tokens, one of them `{entry.name}`")
            tokens[digest] = entry
        return tokens

    def _entry(self, path: Path, name: str, value: Any) -> tuple[bytes, TokenEntry]:
        where = f"`tokens.{name[:64]}`"
        fields = _table(value, path, where)
        unknown = sorted(str(key) for key in fields if key not in _KEYS)
        if unknown:
            raise _wrong(path, f"has `{unknown[0][:40]}` in {where}, which is not known")
        digest = str(fields.get("hash") or "")
        if not re.fullmatch(_HASH, digest):
            raise _wrong(path, f"has no SHA-256 of 64 hexadecimal digits as `hash` of {where}")
        sources = _names(fields.get("sources"), path, where)
        if database := fields.get("database"):
            sources = (sources or frozenset()) | {str(database)}
        tables = _names(fields.get("tables"), path, where)
        try:
            scope = Scope(fields.get("scope") or Scope.READ_ONLY)
        except ValueError:
            raise _wrong(path, f"has a `scope` of {where} that is not known") from None
        try:
            self._check(name, tables or ())
        except TidegateError as error:
            raise _wrong(path, f"has a fault in {where}: {error.message}") from None
        return bytes.fromhex(digest), TokenEntry(
            id=ID_PREFIX + digest[:16].lower(),
            name=name,
            prefix="",
            scope=scope,
            sources=sources,
            created_at=_time(fields.get("created_at"), path, where) or 0.0,
            expires_at=_time(fields.get("expires_at"), path, where),
            tags=_names(fields.get("tags"), path, where),
            tables=tables,
        )


def _table(value: Any, path: Path, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _wrong(path, f"has no names and values in {where}")
    return cast("dict[Any, Any]", value)


def _names(value: Any, path: Path, where: str) -> frozenset[str] | None:
    """A list of texts; None if there is none."""
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):  # pyright: ignore[reportUnknownVariableType] - parsed text has no type
        raise _wrong(path, f"has a list in {where} that is not one of texts")
    return frozenset(cast("list[str]", value))


def _time(value: Any, path: Path, where: str) -> float | None:
    """Unix seconds of a time in a file; one without a zone is UTC. An empty one is None."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise _wrong(path, f"has a time in {where} that cannot be read") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        raise _wrong(path, f"has a time in {where} that cannot be read")
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def _wrong(path: Path, problem: str) -> TidegateError:
    return invalid(
        f"The token file `{path}` {problem}.",
        hint="Correct it: until then no token of it is valid.",
    )
