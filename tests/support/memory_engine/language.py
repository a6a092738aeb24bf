"""Judges the statements and operations of the memory engine by their first word."""

from __future__ import annotations

import re
from typing import Any

from support.memory_engine.requests import CountAll
from tidegate.errors import Code, TidegateError
from tidegate.model.language import Language
from tidegate.model.requests import Explain, Operation, Query, Request
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement
from tidegate.secrets.redaction import MASK

STATEMENTS = {
    **dict.fromkeys(("ROWS", "VALUES", "ECHO", "TABLE", "COUNT", "SLEEP", "FAIL"), Effect.READ),
    "APPEND": Effect.WRITE,
    "CLEAR": Effect.DESTRUCTIVE,
}
OPERATIONS = {
    "table.read": Effect.READ,
    "row.add": Effect.WRITE,
    "table.clear": Effect.DESTRUCTIVE,
    # A basket is the caller's own: no other caller and no table sees a change of it.
    "basket.open": Effect.READ,
    "basket.put": Effect.READ,
    "basket.read": Effect.READ,
    "basket.close": Effect.READ,
}


def read(text: str) -> tuple[str, str]:
    """The word and the argument of a statement. Raises: TidegateError SQL_*."""
    first, separator, rest = text.strip().partition(";")
    if separator and rest.strip():
        raise TidegateError(Code.SQL_MULTIPLE, "The text holds more than one statement.")
    if not first.strip():
        raise TidegateError(Code.SQL_EMPTY, "The text holds no statement.")
    word, _, argument = first.strip().partition(" ")
    if word not in STATEMENTS:
        raise TidegateError(
            Code.SQL_FAILED, f"`{word}` is no statement.", details={"memory": "word"}
        )
    return word, argument.strip()


class MemoryLanguage(Language):
    """It hides nothing: where masks or filters bind a caller, the default refuses its requests."""

    def redact(self, text: str, dialect: str, *, mentions: bool = False) -> str:
        """There are no quotes: the word after `password` is the secret, wherever texts are cut."""
        return re.sub(r"(?i)(password\s+)\S+", rf"\1{MASK}", text)

    def literal(self, value: Any, dialect: str) -> str:
        """Text stands between angle brackets."""
        if not isinstance(value, str):
            return str(value)
        return "<" + value.replace("\\", "\\\\").replace(">", "\\>") + ">"

    def classify(self, request: Request, source: Source) -> Judgement:
        if isinstance(request, Operation):
            effect = OPERATIONS.get(request.name, Effect.UNKNOWN)
            if effect is Effect.UNKNOWN:
                return _unknown(f"There is no operation `{request.name[:80]}`.", Code.SQL_UNKNOWN)
            table = str(request.arguments.get("table", ""))
            return _known(effect, request.name, table)
        if isinstance(request, CountAll):
            return _known(Effect.READ, "count", "")
        if isinstance(request, (Query, Explain)):
            try:
                word, argument = read(request.statement.text)
            except TidegateError as error:
                code = Code.SQL_UNKNOWN if error.code is Code.SQL_FAILED else error.code
                return _unknown(error.message, code)
            effect = Effect.READ if isinstance(request, Explain) else STATEMENTS[word]
            table = (
                argument.partition(" ")[0] if word in ("TABLE", "COUNT", "APPEND", "CLEAR") else ""
            )
            return _known(effect, word.lower(), table)
        return _unknown(f"This source answers no `{request.kind}`.", Code.SQL_UNKNOWN)


def _known(effect: Effect, verb: str, table: str) -> Judgement:
    tables = (table.lower(),) if table else ()
    return Judgement(effect, "memory.word", f"The request is {verb}.", tables=tables, verb=verb)


def _unknown(reason: str, code: Code) -> Judgement:
    return Judgement(Effect.UNKNOWN, "memory.word", reason, code.value)


LANGUAGE = MemoryLanguage()
