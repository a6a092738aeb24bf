"""The tokens of a command of a PostgreSQL session, read one after the other. Pure."""

from __future__ import annotations

import re

from tidegate.sql.lex import NAME, NUMBER, STRING, WORD, Token

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_$]*|\$user")


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
        """The next token's keyword, passed; empty if it is none."""
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

    def item(self) -> str | None:
        """A value as one name of a list of names, in quotes where it would not be read as one
        without; None if there is none."""
        plain = not self.at_end and self.tokens[self.at].kind == WORD
        value = self.value()
        if value is None or plain or _PLAIN_NAME.fullmatch(value):
            return None if value is None else value.lower()
        return '"' + value.replace('"', '""') + '"'

    def text_value(self) -> str | None:
        """A string; None if there is none."""
        if self.at_end or self.tokens[self.at].kind != STRING:
            return None
        return self.value()

    def rest(self) -> str:
        """The text from here on."""
        return "" if self.at_end else self.text[self.tokens[self.at].at :].rstrip("; \t\r\n")
