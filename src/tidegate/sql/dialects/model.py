"""The shape of a dialect: data about its syntax, and how it writes names, values and masks.

The methods here follow standard SQL. A dialect that differs overrides them in its own module.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, Literal, NamedTuple, cast

import msgspec

from tidegate.model.decimals import plain

Write = Callable[[Any], str]
"""Writes a value as a literal."""


def words(block: str) -> frozenset[str]:
    """The words of a block of text, as a set."""
    return frozenset(block.split())


class LexicalRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a dialect's text falls into tokens.

    `operators` are those that call only the database's own code; with `operator_runs` adjacent
    operator characters make one operator, as in PostgreSQL. `parameters` is a pattern.
    With `slash_comments` the database may read `//` as a comment up to the end of the line: it is
    refused.
    `executable_comments` and `backslashes` have no default: a wrong one would end a comment or a
    string elsewhere than the database does.
    """

    operators: frozenset[str]
    operator_runs: bool = False
    parameters: str = r"\?"
    comments: Literal["flat", "nested", "ambiguous"] = "flat"
    dash_comment_needs_space: bool = False
    hash_comments: bool = False
    slash_comments: bool = False
    executable_comments: bool
    backslashes: Literal["plain", "escape", "ambiguous"]
    escape_strings: bool = False
    dollar_strings: bool = False
    string_prefixes: str = ""
    double_quoted: Literal["name", "string"] = "name"
    backticks: bool = False
    bracketed_names: bool = False
    names_fold: bool = True


class SystemTable(NamedTuple):
    """What may be read of a system table while something is hidden.

    `columns` are those that are known to be harmless; `name=type` is NULL in place of one that is
    not, `name?` is NULL in rows that fit `hidden_where`: a condition with `{columns}` for
    (schema, table, column) of masked columns, or `{tables}` for names in lower case of tables whose
    definitions tell defaults of such columns. `origin` is its full name.
    """

    origin: str
    columns: str
    hidden_where: str = ""


INFIX = words("DIV ESCAPE GLOB ILIKE MATCH OVERLAPS REGEXP RLIKE SIMILAR XOR")
"""The infix words of all databases, for a dialect that does not say which are its own."""


class ColumnTypes(msgspec.Struct, frozen=True):
    """The types of columns into which a file is imported: by the kind of their values, for texts,
    and for texts of up to 255 characters where those have another. `decimal` is that of numbers
    with a point, with `{scale}` for the digits after it, up to so many digits in all and after
    the point; more are kept as text. Empty: it takes any, and is among `by_kind`."""

    by_kind: dict[str, str]
    text: str = "text"
    short_text: str = ""
    decimal: str = ""
    most_digits: int = 0
    most_scale: int = 0


STANDARD_TYPES = ColumnTypes(
    {
        "integer": "bigint", "decimal": "numeric", "float": "double precision",
        "boolean": "boolean", "date": "date", "time": "time without time zone",
        "timestamp": "timestamp without time zone", "timestamp_tz": "timestamp with time zone",
        "bytes": "bytea",
    }
)  # fmt: skip


class Dialect(msgspec.Struct, frozen=True):
    """What a dialect's words mean.

    `roots` maps the first word of a statement to its form: `query`, `change`, `create`, `drop`,
    `alter`, `explain`, `analyze`, `describe`, `show`, `pragma`, or the label of an effect that
    the word alone decides. Names are lower-case, keywords upper-case.

    `changing_functions` may be called in a statement that changes data anyway: what they change is
    a sequence or what the session last inserted. `change_words` may follow the first word of
    a change and say only how it is done. `definition_words` and `index_words` are reserved words
    that come before a bracket in a definition, the latter with or without an index's name.

    `keywords` are further words that cannot be names and may come before a bracket.
    `infix` are words that are operators after an operand, and may be names anywhere else.
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
    `statement_state` are functions and variables (with their `@@`) that tell of the statement
    before on the same session, and `session_state` functions that tell of what the session did:
    both of others' statements, where sessions are shared; the latter are right in a block.
    `trusted` maps functions of users that may be called, as `function_key` has them, to how their
    source names them; only a copy of a dialect has some (`judge`).
    `worded` maps functions whose arguments are parted by words to some that have commas. With
    `remotes` a name with `@` after it is searched for in another database.

    The fields from `title` on are documented one by one.
    """

    name: str
    parser: str
    lexical_rules: LexicalRules
    roots: dict[str, str]
    functions: frozenset[str]
    bare_functions: frozenset[str] = frozenset()
    table_functions: frozenset[str] = frozenset()
    changing_functions: frozenset[str] = frozenset()
    statement_state: frozenset[str] = frozenset()
    session_state: frozenset[str] = frozenset()
    change_words: frozenset[str] = frozenset()
    definition_words: frozenset[str] = frozenset()
    index_words: frozenset[str] = frozenset()
    function_schemas: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()
    infix: frozenset[str] = INFIX
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
    trusted: dict[str, str] = {}
    title: str = ""
    """The product's name."""
    titles: dict[str, str] = {}
    """Other names by the scheme of a source's URL."""
    in_files: bool = False
    """A database is a local file, without a server."""

    # Names.
    quote_mark: str = '"'
    folds_quoted: bool = True
    """Quoted names are compared without regard to case."""
    database_prefix: bool = True
    """A table may be called `database.schema.table`."""
    database_as_schema: bool = False
    """`database.table` means a table of the default schema."""
    reads_other_databases: bool = False
    """One connection reads all databases of its server that its account may read."""
    dummy_tables: frozenset[str] = frozenset()
    """Names of a table of one row without columns."""

    own_functions: Literal["", "as written", "schema as written", "any case"] = ""
    """Users write functions in its databases, and how the names of these are compared."""
    own_functions_by_name: bool = False
    """A function of a user is also called without its schema; the engine sees to it that no other
    one of that name is meant."""

    path_schemas: bool = False
    """A schema's name is a path of names with points between them: `provider.service`."""
    colon_casts: bool = True
    """`x::type` is a cast."""

    # Parameters.
    variable_sigil: str = ""
    """Begins the name of a session's variable, which the lexer takes for a parameter."""
    numbered_parameters: bool = False
    """`$2` takes the second parameter."""
    numbered_questions: bool = False
    """`?2` takes the second parameter."""
    no_question_operator: bool = False
    """`?` takes the next parameter; to the lexer, which reads any sign, it is an operator."""
    is_postgres: bool = False
    """The database is PostgreSQL: its types, catalogs and settings are those that clients of its
    wire protocol know."""
    has_information_schema: bool = False
    """`information_schema` of the SQL standard can be read."""

    # Statements.
    selects_into: bool = True
    """SELECT ... INTO writes its result."""
    plain_selects: bool = False
    """Its plain queries are those of `sql/select_grammar.py`."""
    untyped_columns: bool = False
    """A column takes values of any type."""
    ctes_see_all: bool = False
    """A common table expression sees itself and later ones without RECURSIVE."""
    tables_take_arguments: bool = False
    """A call in a table's place that is no function's reads the table of that name, as if its
    hidden columns were compared with the arguments."""
    outside_tables: frozenset[str] = frozenset()
    """What extensions offer under such names, and what reads files."""
    in_reads_tables: bool = False
    """`IN name` reads a table."""
    update_or: bool = False
    """UPDATE OR IGNORE and its like."""
    values_parses: bool = True
    """The parser knows VALUES as a statement of this dialect."""
    table_engines: frozenset[str] = frozenset()
    """Storage engines that keep rows in the database's own files, where ENGINE chooses one."""
    code_clauses: frozenset[str] = frozenset()
    """Words after which a definition names a class of code, as ENGINE and EXTERNAL do where
    databases are written in Java."""
    view_options: bool = False
    """ALGORITHM and SQL SECURITY may precede VIEW."""
    administration: frozenset[str] = frozenset()
    """Kinds of statements of `sql/administration.py` that it has: `account`, `call`, `copy`,
    `maintenance`, `rights`, `routine`, `trigger`."""
    concurrent_indexes: bool = False
    """Indexes can be made and dropped CONCURRENTLY, which no transaction may hold."""
    procedures_commit: bool = False
    """A procedure may commit, if it is called in no transaction."""
    definitions_commit: bool = False
    """A definition ends its transaction, and accounts are `'name'@'host'`."""
    routine_languages: frozenset[str] = frozenset()
    """Languages of routines whose code the gate can read, in upper case."""
    server_prefixes: tuple[str, ...] = ()
    """Begin the names of the server's own roles and functions, some of which reach its files: no
    statement that administers may hold such a name."""
    system_databases: tuple[str, ...] = ()
    """The server's own databases, which the pattern of a GRANT may not cover."""
    settings_tables: frozenset[str] = frozenset()
    """Tables through whose rows settings are changed."""
    changes_joins: bool = False
    """UPDATE and DELETE name all their tables together, and may change several."""
    with_before_change: bool = True
    """A change may begin with WITH."""
    updates_to_default: bool = True
    """UPDATE can set a column to DEFAULT."""
    empty_insert: str = "DEFAULT VALUES"
    """Ends an INSERT of a row without values of its own."""
    explains_tables: bool = False
    """EXPLAIN of a table describes its columns."""
    explains_queries_only: bool = False
    temporary_schemas: frozenset[str] = frozenset()
    """Schemas of the objects of one session, in lower case; also with a number after the name."""
    keeps_global_temporary: bool = False
    """A GLOBAL TEMPORARY table stays, as a definition; only its rows are a session's."""
    explain_creates: bool = False
    """Planning a CREATE already makes schemas for temporary objects."""
    describes_in_queries: bool = False
    """DESCRIBE and SUMMARIZE may replace a table."""
    show_describes: bool = False
    """SHOW of anything that is not in `shows` describes it."""

    # Masks and row filters.
    fence: str = ""
    """Ends a derived table with a filter. It keeps the database from evaluating the caller's
    conditions before the filter: they would see hidden rows, and could reveal them by failing.
    Empty if the dialect has no masks."""
    row_names: tuple[str, ...] = ()
    """Names of the number by which a table stores its rows, unless a column is called so."""
    reads_row: str = ""
    """A condition on a term that is true of every row, and for which the database has to read the
    row and not an index without the term."""
    scans_as_stored: bool = False
    """A scan gives rows as they are stored whatever index it uses, where `as_stored` ends a derived
    table, or always if that is empty."""
    as_stored: str = ""
    """A comment at the end of a derived table whose rows must keep the order in which they are
    stored. A statement that has it runs with the settings `stored_order`."""
    stored_order: tuple[tuple[str, str], ...] = ()
    system_tables: dict[str, frozenset[str]] = {}
    """System tables, by schema, that describe and hold no values of columns. "" has those that are
    known without a schema."""
    partial_tables: dict[tuple[str, str], SystemTable] = {}
    """Those of `system_tables`, by schema and name, that have more than such columns."""
    session_views: dict[str, str] = {}
    """Views of the system schema that show what other sessions run, each with the query that
    replaces it for every caller: the same columns, without the texts."""
    system_schema: str | None = None
    """The system schema in which names without a schema are found."""
    system_prefix: str = ""
    """Begins the names that are searched for in the system schema before any other."""
    plan_words: str = "EXPLAIN "
    """Asks for a plan. Another EXPLAIN is refused while something is hidden."""
    plans_reveal_sizes: bool = True
    """A plan has figures that follow from the sizes and the numbers of values, masked ones too."""
    labels_by_text: bool = True
    """A column without a name is called by the text of its expression."""
    longest_label: int | None = None
    table_clauses: frozenset[str] = frozenset()
    """Further parts of a table in FROM that a derived table can have as well."""
    table_macros: frozenset[str] = frozenset()
    """Functions that, in the place of a table, read the table that their first argument names."""
    tables_are_types: bool = False
    masked_shows: frozenset[str] | None = frozenset()
    """What SHOW may be asked while something is hidden; None for everything that reads."""
    limit_takes_percent: bool = False
    """LIMIT 5 % is a share of the rows, and not the remainder of a division."""
    setting_shows: frozenset[str] | None = frozenset()
    """What SHOW shows of settings alone; None if it shows nothing else."""
    counting_shows: frozenset[str] = frozenset()
    """Those of `masked_shows` that tell counts of the table that they name."""
    describing_shows: frozenset[str] = frozenset()
    """Those of `masked_shows` that tell defaults of the table that they name."""

    # Samples of a table's rows.
    samples_rows: bool = False
    """USING SAMPLE n ROWS takes rows at random from the whole table."""
    samples_pages: bool = False
    """TABLESAMPLE SYSTEM (percent) reads pages at random."""
    row_number: str = ""
    """A column by which rows are found quickly in tables without a key of integers."""
    knows_bounds: bool = False
    """Least and greatest values are kept for every column."""
    pads_chars: bool = False
    """Values of CHAR(n) are filled up with blanks that comparisons ignore."""
    statistics: str = ""
    """A query on the database's statistics of a table, in which `{schema}` and `{table}` are
    literals. Empty unless the database shows an account only those of columns that it may read."""

    # Searches, and statements that others write.
    row_id: str = ""
    """Names a row of a table without a key, as long as the row stays where it is."""
    vectors: Literal["", "typed", "arrays", "bytes"] = ""
    """How vectors are kept: in a type of their own that indexes know, as arrays of numbers, or as
    the bytes of 32-bit numbers."""
    reserved_words: str = ""
    """The place (`module:name`) of the words that are names in quotes alone, in lower case. Without
    one, the words of all dialects are."""
    search: str = ""
    """The module that searches tables of the dialect (`search.ranking.Legs`)."""
    function_names: str = ""
    """A query of the schema and the name of each function of a user that the account may call."""
    reused_parameters: bool = False
    """`?2` takes the second parameter."""
    writing_rules: tuple[str, ...] = ()
    """What an author of statements of this dialect must know."""

    # JDBC.
    driver_types: Literal["", "pgjdbc", "connector-j", "sqlite-jdbc", "duckdb-jdbc"] = ""
    """The driver whose types clients of JDBC expect (`products/jdbc/result_types.py`)."""
    escape_functions: dict[str, str] = {}
    """Functions of JDBC's escapes that are called otherwise here."""
    typed_literals: bool = True
    """DATE '2026-01-31' is a literal; otherwise dates, times and decimals are kept as texts."""
    literals_are_calls: bool = False
    """It is written DATE('2026-01-31')."""
    signs_join: bool = False
    """`&&` and `||` mean AND and OR."""

    # Filters that a surface builds.
    text_type: str = "TEXT"
    exact_collation: str = ""
    """Follows a text to compare it with regard to case, where that is not the rule."""
    globs: bool = False
    """LIKE ignores case, and GLOB does not."""
    row_limits: Literal["limit", "fetch"] = "limit"
    """How a query is cut to some of its rows: by LIMIT and OFFSET, or by OFFSET and FETCH NEXT as
    the SQL standard has it."""
    null_order: Literal["", "least", "greatest", "last"] = ""
    """Where NULL comes in a sorted result: as the least value, as the greatest, or last in either
    direction. Empty where it is not known."""
    ordered_kinds: frozenset[str] | None = None
    """Kinds of columns of which the database sorts and compares values alike, and a literal gives
    back each. None where they are not known; with `untyped_columns` the value counts, not they."""
    unordered_types: str = ""
    """A pattern of the types, in lower case, for which that does not hold after all."""
    trigger_query: str = ""
    """Gives the triggers of `{table}` in `{schema}`, which are literals. Empty: none is known."""
    plan_format: Literal["", "rows", "nodes", "operators", "query blocks"] = ""
    """The form of its plans, if they can be read as a tree."""
    plan_prefixes: tuple[str, str] | None = None
    """Before a statement to have its plan as JSON: without running it, and by running it."""
    plan_figures: str = ""
    """The place (`module:function`) of what reads a `sql.plan_figures.PlanFigures` from its plan as
    JSON; empty: its plans have no figures."""
    table_forms: str = ""
    """The place (`module:NAME`) of its `sql.table_forms.writer.TableWriter`; empty: it has none."""
    column_types: ColumnTypes = STANDARD_TYPES
    server_views: dict[str, str] = {}
    """Queries on a server's activity by panel: `sessions`, `metrics`, `slow_queries`, `errors`."""
    server_panels: dict[str, tuple[str, ...]] = {}
    """By panel (`model.server_requests`), statements of which the first that the server knows is
    run. Their cells are texts."""
    server_texts: dict[str, tuple[str, ...]] = {}
    """The same where they show what others run."""
    cancel_session: str = ""
    """Cancels what the session with the number `{session}` runs, which began at `{started}`, a
    literal."""

    def quote(self, name: str) -> str:
        """A name in quotes."""
        mark = self.quote_mark
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"

    def marker(self, place: int) -> str:
        """The placeholder of the parameter at a place, from 1."""
        return "?"

    def beginning(self, text: str, length: int) -> str:
        """The first characters of a text; both are terms."""
        return f"substr({text}, 1, {length})"

    def limited(self, query: str, rows: int, offset: int = 0) -> str:
        """A query cut to so many of its rows, those after the first `offset`."""
        if self.row_limits == "fetch":
            skipped = f" OFFSET {offset} ROWS" if offset else ""
            return f"{query}{skipped} FETCH NEXT {rows} ROWS ONLY"
        skipped = f" OFFSET {offset}" if offset else ""
        return f"{query} LIMIT {rows}{skipped}"

    # Values as literals.

    def literal(self, value: Any) -> str:
        """A value as a literal that the database reads as the same value."""
        if value is None:
            return "NULL"
        if value is True or value is False:
            return "TRUE" if value else "FALSE"
        if isinstance(value, Decimal):
            finite = value.is_finite()
            return plain(value) if finite else self.not_finite(float(value))
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, float):
            return repr(value) if isfinite(value) else self.not_finite(value)
        if isinstance(value, msgspec.Raw):
            return self.text_literal(bytes(value).decode())
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.bytes_literal(bytes(cast("bytes", value)))
        if isinstance(value, Mapping):
            return self.text_literal(msgspec.json.encode(value, enc_hook=str).decode())
        if isinstance(value, (list, tuple)):
            return self.array(cast("Sequence[Any]", value))
        if isinstance(value, datetime.datetime):
            return self.text_literal(value.isoformat(" "))
        if isinstance(value, datetime.timedelta):
            return self.text_literal(_interval(value))
        return self.text_literal(str(value))

    def text_literal(self, value: str) -> str:
        doubled = value.replace("'", "''")
        return f"'{doubled}'"

    def bytes_literal(self, value: bytes) -> str:
        return f"X'{value.hex()}'"

    def array(self, values: Sequence[Any]) -> str:
        return self.text_literal(msgspec.json.encode(values, enc_hook=str).decode())

    def not_finite(self, value: float) -> str:
        """NaN or an infinity; NULL where the database has none."""
        word = "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")
        return f"CAST('{word}' AS DOUBLE PRECISION)"

    def export_writer(self, kind: str, as_text: Callable[[Any], str | None]) -> Write | None:
        """Writes values of a column of the type `kind` as that column takes them back; None if
        `literal` does. `as_text` renders a value as a text cell of a result."""
        return None

    # Masks. A term is an SQL expression.

    def without_indexes(self, names: Sequence[str]) -> str:
        """What follows a table's name so that no index of these is read."""
        return ""

    def estimated_alike(self, query: str, nulls: Sequence[str]) -> str:
        """A query of a table with a filter so that the database expects much the same number of
        rows of it however many are hidden. `nulls` are NULL of each of its columns' types."""
        return query

    def without_distinct(self, query: str, nulls: Sequence[str]) -> str:
        """A query of a table with `partial` masks so that the database does not expect as many of
        them as there are masked values. `nulls` are NULL of each of its columns' types."""
        return query

    def sortable(self, term: str) -> str:
        """The term as it is sorted by so that only equal values are ties."""
        return term

    def null_of(self, term: str, kind: str) -> str:
        """NULL of the column's type."""
        return f"CAST(NULL AS {kind})" if kind else "NULL"

    def as_text(self, term: str) -> str:
        return f"CAST({term} AS VARCHAR)"

    def hash_of(self, key: str, text: str) -> str:
        """The SHA-256, in hexadecimal, of a key followed by a text; both are terms."""
        return f"sha256({key} || {text})"

    def concat(self, *terms: str) -> str:
        return " || ".join(terms)

    def length(self, text: str) -> str:
        return f"length({text})"

    def position(self, text: str, sought: str) -> str:
        return f"instr({text}, {sought})"

    def substr(self, text: str, *bounds: str) -> str:
        return f"substr({', '.join((text, *bounds))})"


def _interval(value: datetime.timedelta) -> str:
    """As SQL and MySQL's TIME read it: hours that may pass 24, minutes, seconds."""
    whole = value // datetime.timedelta(microseconds=1)
    sign, whole = ("-", -whole) if whole < 0 else ("", whole)
    seconds, micros = divmod(whole, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    fraction = f".{micros:06d}" if micros else ""
    return f"{sign}{hour:02d}:{minute:02d}:{second:02d}{fraction}"
