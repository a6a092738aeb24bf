"""The shape of a dialect's tables. Says what there is to know, not what any database does."""

from __future__ import annotations

from typing import Literal

import msgspec


def words(block: str) -> frozenset[str]:
    """The words of a block of text, as a set."""
    return frozenset(block.split())


class Lexis(msgspec.Struct, frozen=True):
    """How a dialect's text falls into tokens.

    `operators` are those that call only the database's own code; with `operator_runs` adjacent
    operator characters make one operator, as in PostgreSQL. `parameters` is a pattern.
    """

    operators: frozenset[str]
    operator_runs: bool = False
    parameters: str = r"\?"
    comments: Literal["flat", "nested", "ambiguous"] = "flat"
    dash_comment_needs_space: bool = False
    hash_comments: bool = False
    executable_comments: bool = False
    backslashes: Literal["plain", "escape", "ambiguous"] = "plain"
    escape_strings: bool = False
    dollar_strings: bool = False
    string_prefixes: str = ""
    double_quoted: Literal["name", "string"] = "name"
    backticks: bool = False
    bracketed_names: bool = False
    names_fold: bool = True


class Dialect(msgspec.Struct, frozen=True):
    """What a dialect's words mean.

    `roots` maps the first word of a statement to its form: `query`, `change`, `create`, `drop`,
    `alter`, `explain`, `analyze`, `describe`, `show`, `pragma`, or the label of an effect that
    the word alone decides. Names are lower-case, keywords upper-case.

    `changing_functions` may be called in a statement that changes data anyway: what they change is
    a sequence or what the session last inserted. `change_words` may stand behind the first word of
    a change and say only how it is done. `definition_words` and `index_words` are reserved words
    that stand before a bracket in a definition, the latter with or without an index's name.

    `keywords` are further words that cannot be names and may stand before a bracket.
    `functions` may be called anywhere, `bare_functions` only without arguments,
    `table_functions` only with literal table names, after a dot only if it follows one of
    `function_schemas` or functions are `methods` of any value. `attributes` are names that must
    not follow a dot, because there they would be calls. `modules` are those of virtual tables that
    keep to the database and call no function that their text names. `secrets` are patterns of
    tables (`schema.table` or `table`, `*` for anything) that hold credentials or other sessions'
    texts, `admitted` the exceptions. `stand_ins` maps operators that the parser does not know to
    some that it does, `respellings` runs of tokens to others: `'` is a string, `#` a number, `@` a
    word, `*` what holds no bracket, and a digit in the second text the token at that place of the
    first.
    `worded` maps functions whose arguments are parted by words to some that have commas. With
    `remotes` a name with `@` behind it is looked for in another database.
    """

    name: str
    parser: str
    lexis: Lexis
    roots: dict[str, str]
    functions: frozenset[str]
    bare_functions: frozenset[str] = frozenset()
    table_functions: frozenset[str] = frozenset()
    changing_functions: frozenset[str] = frozenset()
    change_words: frozenset[str] = frozenset()
    definition_words: frozenset[str] = frozenset()
    index_words: frozenset[str] = frozenset()
    function_schemas: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()
    methods: bool = False
    attributes: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()
    admitted: frozenset[str] = frozenset()
    shows: frozenset[str] = frozenset()
    pragmas: frozenset[str] = frozenset()
    argument_pragmas: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    stand_ins: dict[str, str] = {}
    compound: frozenset[str] = frozenset()
    explain_words: frozenset[str] = frozenset()
    respellings: tuple[tuple[str, str], ...] = ()
    worded: dict[str, str] = {}
    reserved_verbs: frozenset[str] = frozenset()
    assigns: bool = False
    reads_files: bool = False
    remotes: bool = False
