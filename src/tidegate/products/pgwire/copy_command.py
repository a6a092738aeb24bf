"""Reads COPY TO STDOUT with its options. Pure."""

from __future__ import annotations

from tidegate.products.pgwire.command_tokens import CommandTokens
from tidegate.products.pgwire.parsed_commands import Command, CopyOut, Refused


def read_copy(reader: CommandTokens) -> Command | None:
    """COPY { table [(column, …)] | (query) } TO STDOUT [[WITH] (option, …)]. COPY FROM, and what
    cannot be read, are left to the gate, which refuses them by name."""
    if reader.take("("):
        inner = _within_brackets(reader)
        if inner is None:
            return None
    else:
        begun = reader.at
        while reader.name() and reader.take("."):
            pass
        if reader.at == begun:
            return None
        table = reader.text[reader.tokens[begun].at : _end_of(reader)]
        columns = "*"
        if reader.take("("):
            listed = _within_brackets(reader)
            if listed is None:
                return None
            columns = listed
        inner = f"SELECT {columns} FROM {table}"
    if not reader.take("TO", "STDOUT"):
        return None
    reader.take("WITH")
    options = _copy_options(reader)
    if options is None:
        return Refused(
            "0A000",
            "An option of COPY TO STDOUT is not read here.",
            "Use FORMAT, HEADER, DELIMITER and NULL, as in WITH (FORMAT csv, HEADER).",
        )
    return _copy_out(inner, options)


def _copy_out(inner: str, options: dict[str, str]) -> Command:
    """The command with these options, or why not."""
    form = options.pop("format", "text").lower()
    if form not in ("text", "csv", "binary"):
        message = f'COPY format "{form[:40]}" not recognized.'
        return Refused("22023", message, "Use text, csv or binary.")
    if options.pop("encoding", "utf8").lower() not in ("utf8", "utf-8"):
        return Refused("0A000", "COPY writes UTF8 alone here.", "Leave ENCODING out.")
    if form == "binary":
        if options:
            names = ", ".join(options).upper()[:80]
            message = f"COPY in binary format takes no {names}."
            return Refused("42601", message, "Leave it out.")
        return CopyOut(inner, "binary", False, "", "")
    header = options.pop("header", "false").lower() in ("", "true", "on", "1")
    delimiter = options.pop("delimiter", "," if form == "csv" else "\t")
    null = options.pop("null", "" if form == "csv" else "\\N")
    if options:
        names = ", ".join(options).upper()[:80]
        message = f"COPY takes no {names} here."
        return Refused("0A000", message, "Use FORMAT, HEADER, DELIMITER and NULL.")
    if len(delimiter.encode()) != 1:
        return Refused("0A000", "A delimiter of COPY is one ASCII character.", "Use another one.")
    return CopyOut(inner, "csv" if form == "csv" else "text", header, delimiter, null)


def _copy_options(reader: CommandTokens) -> dict[str, str] | None:
    """The options in brackets, or as before PostgreSQL 9.0; None if they cannot be
    read."""
    found: dict[str, str] = {}
    if reader.take("("):
        while True:
            name = reader.name()
            if not name or name in found:
                return None
            has_value = not reader.at_end and reader.tokens[reader.at].key not in (",", ")")
            found[name] = (reader.value() or "") if has_value else ""
            if reader.take(")"):
                return found if reader.at_end else None
            if not reader.take(","):
                return None
    while not reader.at_end:
        if reader.take("CSV"):
            found["format"] = "csv"
        elif reader.take("HEADER"):
            found["header"] = "true"
        elif reader.take("BINARY"):
            found["format"] = "binary"
        elif (reader.take("DELIMITER") or reader.take("DELIMITERS")) and "delimiter" not in found:
            reader.take("AS")
            found["delimiter"] = reader.text_value() or ""
        elif reader.take("NULL") and "null" not in found:
            reader.take("AS")
            null = reader.text_value()
            if null is None:
                return None
            found["null"] = null
        else:
            return None
    return found


def _within_brackets(reader: CommandTokens) -> str | None:
    """The text up to the bracket that closes the one just passed, which is passed as well."""
    begun, depth = reader.at, 1
    while not reader.at_end:
        key = reader.tokens[reader.at].key
        depth += (key == "(") - (key == ")")
        reader.at += 1
        if depth == 0:
            first = reader.tokens[begun].at
            return reader.text[first : reader.tokens[reader.at - 1].at].strip() or None
    return None


def _end_of(reader: CommandTokens) -> int:
    """Where the next token begins, or the text ends."""
    return len(reader.text) if reader.at_end else reader.tokens[reader.at].at
