"""Builds the one regular expression that finds a dialect's tokens. Decides what may follow what
within a token; says nothing about tokens together.

Every repetition is possessive: nothing is tried twice, so a hostile text costs no more than its
length.
"""

from __future__ import annotations

import re
from functools import cache

from tidegate.sql.dialects.model import LexicalRules

_IDENT = r"[A-Za-z_\x80-\U0010ffff]"
_CONT = r"[A-Za-z0-9_$\x80-\U0010ffff]"
_OPERATOR_CATALOG = (
    r"(?i:OPERATOR)\s*+\(\s*+(?i:pg_catalog)\s*+\.\s*+(?P<qualified>[^\s()\w]++)\s*+\)"
)


@cache
def token_regex(rules: LexicalRules) -> re.Pattern[str]:
    """The expression for one token of the dialect, after any blanks: the name of the group that
    matched is the token's kind."""
    plain = r"'[^']*+(?:''[^']*+)*+'"
    escape = r"'(?:[^'\\]++|\\.|'')*+'"
    quoted = escape if rules.backslashes == "escape" else plain
    double = (
        r'"(?:[^"\\]++|\\.|"")*+"' if rules.double_quoted == "string" else r'"[^"]*+(?:""[^"]*+)*+"'
    )
    parts: list[str] = [r"(?P<end>\Z)"]
    dash = r"--(?=[\x00-\x20]|\Z)[^\n]*+" if rules.dash_comment_needs_space else r"--[^\n]*+"
    hash_mark = r"|#[^\n]*+" if rules.hash_comments else ""
    parts.append(rf"(?P<comment>{dash}{hash_mark})")
    if rules.slash_comments:
        parts.append(r"(?P<slashes>//)")
    parts.append(r"(?P<block>/\*)")
    if rules.escape_strings:
        parts.append(rf"(?P<escape>[eE]{escape})")
        parts.append(rf"(?P<escaped>[uU]&{plain})")
        parts.append(r"(?P<unicode>[uU]&['\"])")
    if rules.string_prefixes:
        parts.append(rf"(?P<prefixed>[{rules.string_prefixes}]{quoted})")
    number = (
        r"(?:0[xXbBoO][0-9A-Fa-f_]++|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?+|\.[0-9][0-9_]*+)"
        rf"(?:[eE][+-]?+[0-9]++)?+)(?!{_CONT})"
    )
    parts.append(rf"(?P<number>{number})")
    if rules.operator_runs:
        parts.append(_OPERATOR_CATALOG)
    parts.append(rf"(?P<word>{_IDENT}{_CONT}*+)")
    if rules.dollar_strings:
        parts.append(rf"(?P<dollar>\$(?:{_IDENT}[A-Za-z0-9_\x80-\U0010ffff]*+)?+\$)")
    parts.append(rf"(?P<string>{quoted})")
    parts.append(rf"(?P<quotes>{double})")
    if rules.backticks:
        parts.append(r"(?P<backtick>`[^`]*+(?:``[^`]*+)*+`)")
    if rules.bracketed_names:
        parts.append(r"(?P<bracket>\[[^\]\[]*+\])")
    if rules.parameters:
        parts.append(rf"(?P<param>{rules.parameters})")
    parts.append(rf"(?P<op>{_operators(rules)})")
    return re.compile(rf"[ \t\n\r\f\v]*+(?:{'|'.join(parts)})", re.DOTALL)


def _operators(rules: LexicalRules) -> str:
    marks = "::|:=|=>|[().,;:{}]" if rules.bracketed_names else r"::|:=|=>|[().,;:{}\[\]]"
    if rules.operator_runs:
        # Where it is part of no operator, `?` is a placeholder, also right after one: `id=?`.
        is_part = any("?" in operator for operator in rules.operators - {"?"})
        signs = "".join(re.escape(sign) for sign in f"+-*/<>=~!@#%^&|`{'?' if is_part else ''}")
        marks = marks if is_part else rf"\?|{marks}"
        return rf"(?:(?!--|/\*)[{signs}])++|{marks}"
    longest = sorted(rules.operators, key=len, reverse=True)
    return "|".join([*(re.escape(operator) for operator in longest), marks])
