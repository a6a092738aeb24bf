"""Where the rows of a command go: standard output, or a file that appears when it is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

from tidegate.cli.arguments.options import FORMATS
from tidegate.cli.parquet import ParquetWriter
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand
from tidegate.results.formats import Writer, writer
from tidegate.system.private_files import create_file, draft_of

OutputFormat = Literal["csv", "json", "jsonl", "sql", "parquet"]
ALL_ROWS = 2**40
"""The limit of rows where none was asked for: a file is not cut."""

_ENDINGS: dict[str, OutputFormat] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".sql": "sql",
    ".parquet": "parquet",
}


def format_of(path: str) -> OutputFormat:
    """The format that the ending of a file names. Raises: TidegateError ARGUMENT_INVALID."""
    found = _ENDINGS.get(Path(path).suffix.lower())
    if found is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The ending of `{Path(path).name}` names no format.",
            hint=f"Give one with --format: {', '.join(FORMATS)}.",
        )
    return found


@contextmanager
def open_output(
    path: str | None,
    format: OutputFormat,
    dialect: str,
    *,
    table: str = "",
    overwrite: bool = False,
) -> Generator[Writer | ParquetWriter]:
    """A writer to the file, or to standard output if `path` is None. The file is there when the
    block ends, and not if it fails.

    Raises: TidegateError ARGUMENT_INVALID if there is such a file, or Parquet should go to a
    terminal; OSError.
    """
    if path is None:
        if format == "parquet":
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "Parquet is written to a file.",
                hint="Name it with --output.",
            )
        yield writer(format, _to_stdout, table=table, dialect=dialect)
        return
    target = expand(path)
    if target.is_dir():
        raise TidegateError(Code.ARGUMENT_INVALID, f"{path} is a directory.")
    if target.exists() and not overwrite:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There is already a file {path}.",
            hint="Use another name, or --overwrite.",
        )
    draft = draft_of(target)
    try:
        descriptor = create_file(draft)
    except OSError as error:  # says which file was named, not the draft's name
        raise OSError(error.errno, error.strerror, str(target)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            if format == "parquet":
                parquet = ParquetWriter(draft)
                try:
                    yield parquet
                finally:
                    parquet.close()
            else:
                yield writer(format, partial(_put, file), table=table, dialect=dialect)
        draft.replace(target)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _put(file: BinaryIO, chunk: bytes) -> None:
    file.write(chunk)


def _to_stdout(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
