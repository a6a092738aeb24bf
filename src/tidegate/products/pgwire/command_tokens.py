"""The tokens of a command of a PostgreSQL session, read one after the other. Pure."""

from __future__ import annotations

import re

from tidegate.sql.dialects.model import words
from tidegate.sql.lex import NAME, NUMBER, STRING, WORD, Token
from tidegate.sql.name_lists import listed

RESERVED = words("""
    all analyse analyze and any array as asc asymmetric both case cast check collate column
    constraint create current_catalog current_date current_role current_time current_timestamp
    current_user default deferrable desc distinct do else end except false fetch for foreign from
    grant group having in initially intersect into lateral leading limit localtime localtimestamp
    not null offset on only or order placing primary references returning select session_user some
    symmetric system_user table then to trailing true union unique user using variadic when where
    window with
    """)
"""No name of anything without quotes."""

QUOTED = RESERVED | words("""
    authorization between bigint binary bit boolean char character coalesce collation concurrently
    cross current_schema dec decimal exists extract float freeze full greatest grouping ilike inner
    inout int integer interval is isnull join json json_array json_arrayagg json_exists json_object
    json_objectagg json_query json_scalar json_serialize json_table json_value least left like
    merge_action national natural nchar none normalize notnull nullif numeric out outer overlaps
    overlay position precision real right row setof similar smallint substring tablesample time
    timestamp treat trim values varchar verbose xmlattributes xmlconcat xmlelement xmlexists
    xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
    """)
"""Written in quotes where PostgreSQL writes a name."""


_INTEGER = re.compile(r"0x[0-9a-f]+|0o[0-7]+|0b[01]+|\d+", re.IGNORECASE)
_MOST_INTEGER = 2**31 - 1


class CommandTokens:
    """Goes through the tokens. What does not fit gives None or False, and is not passed."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.tokens)

    def word(self) -> str:
        """The next token's keyword, passed; empty if it is not a word."""
        if self.at_end or self.tokens[self.at].kind != WORD:
            return ""
        self.at += 1
        return self.tokens[self.at - 1].key

    def take(self, *keys: str) -> bool:
        """Pass these keywords or operators, if all of them come now."""
        coming = self.tokens[self.at : self.at + len(keys)]
        if [token.key for token in coming] != list(keys):
            return False
        self.at += len(keys)
        return True

    def name(self) -> str:
        """A name, folded as PostgreSQL folds it; empty if there is none."""
        if self.at_end or self.tokens[self.at].kind not in (WORD, NAME):
            return ""
        token = self.tokens[self.at]
        self.at += 1
        return token.text.lower() if token.kind == WORD else token.text

    def setting(self) -> str:
        """The name of a setting, with dots in it if an extension's; empty if there is none."""
        name = self.name()
        while name and self.take("."):
            name += "." + self.name()
        return name

    def value(self) -> str | None:
        """A string, a number with its sign, or a word; None if there is none."""
        sign = "-" if self.take("-") else ""
        if self.at_end or self.tokens[self.at].kind not in (STRING, NUMBER, WORD, NAME):
            return None
        self.at += 1
        return sign + self.tokens[self.at - 1].text

    def setting_value(self, *, quotes_names: bool) -> str | None:
        """A value of SET as PostgreSQL reads it: a word is folded, a number written out. With
        `quotes_names` it is one name of a list of names, in quotes where it needs them. None if
        there is none."""
        sign = "-" if self.take("-") else ""
        signed = bool(sign) or self.take("+")
        if self.at_end:
            return None
        token = self.tokens[self.at]
        if token.kind == NUMBER:
            self.at += 1
            return sign + _number(token.text)
        word = token.text.lower()
        is_word = token.kind == WORD and (word not in RESERVED or word in ("true", "false", "on"))
        is_text = token.kind == STRING and not self.is_escaped
        if signed or not (is_word or is_text or token.kind == NAME):
            return None
        self.at += 1
        value = word if is_word else token.text
        return listed(value, is_keyword=value in QUOTED) if quotes_names else value

    @property
    def is_escaped(self) -> bool:
        """Whether the next token is a string with escapes, whose text is not read here."""
        if self.at_end or self.tokens[self.at].kind != STRING:
            return False
        at = self.tokens[self.at].at
        return "\\" in self.tokens[self.at].text and self.text[at : at + 1] in "eEuU"

    def text_value(self) -> str | None:
        """A string; None if there is none."""
        if self.at_end or self.tokens[self.at].kind != STRING or self.is_escaped:
            return None
        return self.value()

    def rest(self) -> str:
        """The text from here on."""
        return "" if self.at_end else self.text[self.tokens[self.at].at :].rstrip("; \t\r\n")


def _number(text: str) -> str:
    """A number as PostgreSQL has it after it has read it."""
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits) is None:
        return text
    value = int(digits, 0 if not digits.isdecimal() else 10)
    return str(value) if value <= _MOST_INTEGER else text
