"""A file that names queries of one source and the files of code that hold their rows.

    source = "shop"
    name = "shop"                          # of the class in Java and Scala
    package = "com.example"                # in Java and Scala; none by default
    files = { python = "shop_fixtures.py", java = "ShopFixture.java" }

    [queries.active_users]
    sql = "SELECT id, name FROM users WHERE status = ?"
    parameters = ["active"]

Beside it, FILE.confirmed says which queries were shown, and which of these a person has confirmed.
"""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.fixtures import Language
from tidegate.products.jdbc.fixtures.names import class_name
from tidegate.typed_values import convert_value, decode_json

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
_Package = Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z]\w*(\.[A-Za-z]\w*)*)?$")]


class FixtureQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query with `?` for its parameters, and their values."""

    sql: str
    parameters: list[Any] = []


class FixtureFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says."""

    source: str
    files: dict[Language, str]
    queries: dict[_Name, FixtureQuery]
    name: _Name = "recorded"
    package: _Package = ""

    def digest(self, name: str) -> str:
        """SHA-256 of what is confirmed of a query: source, text and values."""
        query = self.queries[name]
        return hashlib.sha256(
            msgspec.json.encode((self.source, query.sql, query.parameters))
        ).hexdigest()


class Confirmed(msgspec.Struct, frozen=True):
    """The state of one query: the digest that was shown, and whether it was confirmed."""

    digest: str
    confirmed: bool = False


def read_fixture_file(path: Path) -> FixtureFile:
    """The file. Raises: TidegateError ARGUMENT_INVALID."""
    try:
        read = tomllib.loads(path.read_text("utf-8"))
        found = convert_value(read, FixtureFile)
    except OSError as error:
        raise _unfit(path, error.strerror or "it cannot be read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise _unfit(path, str(error)) from error
    if not found.files or not found.queries:
        raise _unfit(path, "it names no file of code, or no query")
    java, needed = found.files.get("java"), f"{class_name(found.name)}.java"
    if java is not None and Path(java).name != needed:
        text = (
            f"the file of Java is called {Path(java).name}, and Java wants {needed}, as its class"
        )
        raise _unfit(path, f"{text}: rename it, or change `name`")
    return found


def read_confirmed(path: Path) -> dict[str, Confirmed]:
    """What was shown and confirmed of the file at `path`. Raises: TidegateError
    ARGUMENT_INVALID."""
    place = _beside(path)
    try:
        return decode_json(place.read_bytes(), dict[str, Confirmed])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise _unfit(place, str(error)) from error


def write_confirmed(path: Path, confirmed: dict[str, Confirmed]) -> None:
    """Keep what was shown and confirmed. Raises: OSError."""
    text = msgspec.json.format(msgspec.json.encode(confirmed, order="sorted"), indent=2)
    _beside(path).write_bytes(text + b"\n")


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.confirmed")


def _unfit(path: Path, what: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"{path}: {what[:300]}.",
        hint="Write it as docs/howto/keep-test-data-true.md shows.",
    )
