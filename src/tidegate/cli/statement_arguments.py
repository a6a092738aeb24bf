"""The statement of a command: its text, from an argument, a file or standard input, and its
parameters."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Statement
from tidegate.sql.named_parameters import bind_names


def statement_text(text: str | None, file: str | None = None) -> str:
    """The statement. Raises: TidegateError ARGUMENT_INVALID if there is none, or two; OSError."""
    if text is not None and file is not None:
        raise TidegateError(
            Code.ARGUMENT_INVALID, "A statement and --file were given.", hint="Give one of them."
        )
    try:
        if file is not None and file != "-":
            return Path(file).read_text("utf-8-sig")
        if "-" in (text, file):
            return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise TidegateError(Code.ARGUMENT_INVALID, "The statement is not UTF-8 text.") from error
    if text is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "SQL is missing.",
            hint="Write it after the source, name a file with --file, or use - for standard input.",
        )
    return text


def statement_of(text: str, values: list[str], named: list[str], dialect: str) -> Statement:
    """The statement with its parameters. Raises: TidegateError ARGUMENT_INVALID, SQL_UNREADABLE."""
    if values and named:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "Values and --param were given.",
            hint="Use values for placeholders, or --param for names.",
        )
    if not named:
        return Statement(text, tuple(map(_value, values)) or None)
    pairs: dict[str, Any] = {}
    for each in named:
        name, equals, value = each.partition("=")
        if not name.isidentifier() or not equals or name in pairs:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"`--param {each[:80]}` is not NAME=VALUE, or the name came before.",
                hint="Write --param id=7, and :id in the statement.",
            )
        pairs[name] = _value(value)
    return Statement(*bind_names(text, pairs, dialect))


def source_and_text(arguments: argparse.Namespace) -> tuple[str | None, str | None]:
    """(source, statement) of a command that takes `SOURCE SQL`. A single word is the statement, or
    with --file the source. Raises: TidegateError ARGUMENT_INVALID for more words."""
    given = (arguments.first, arguments.second, *arguments.rest)
    words = [word for word in given if word is not None]
    if len(words) > 2:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"Too many arguments: {' '.join(words[2:])}.",
            hint="Quote a value that has spaces.",
        )
    first, second = [*words, None, None][:2]
    return (first, second) if second is not None or arguments.file else (None, first)


def _value(text: str) -> Any:
    """A number, `true`, `false`, `null` or a quoted text as in JSON; otherwise the text itself."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError):
        return text
    return text if isinstance(value, list | dict) else value
