"""Which tables a caller may use that has a list of them, and what it may say in addition to their
names.

What is not on the list is refused in the same words, whether there is such a table or not: so
nothing here reads the names of other tables, and what could tell of them is not admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate.errors import TABLE_LIST_RULE, Code, TidegateError, table_refused
from tidegate.model.data_rules import admitted
from tidegate.model.schema import Catalog, Table
from tidegate.model.statements import Judgement
from tidegate.sql.dialects.model import Dialect, words
from tidegate.sql.lex import NAME, STRING, WORD, Token
from tidegate.sql.masking.parsed_statement import ParsedStatement
from tidegate.sql.masking.verification import table_names

_REVEALING = words("""
    col_description columns_of current_setting currval format_pg_type format_type lastval nextval
    obj_description regclass setval shobj_description statement_digest statement_digest_text
    """)
_REVEALING_STARTS = ("duckdb_", "has_", "pg_", "pragma_", "to_reg")
_SILENT = words("""
    pg_backend_pid pg_client_encoding pg_lsn pg_postmaster_start_time pg_size_bytes pg_size_pretty
    pg_sleep pg_sleep_for pg_sleep_until pg_typeof
    """)
_IN_TABLES_PLACE = words("""
    generate_series generate_subscripts json_array_elements json_array_elements_text json_each
    json_each_text json_object_keys json_populate_record json_populate_recordset json_table
    json_to_record json_to_recordset json_tree jsonb_array_elements jsonb_array_elements_text
    jsonb_each jsonb_each_text jsonb_object_keys jsonb_path_query jsonb_path_query_tz
    jsonb_populate_record jsonb_populate_recordset jsonb_to_record jsonb_to_recordset lateral range
    regexp_matches regexp_split_to_table repeat string_to_table unnest xmltable
    """)
_OBJECTS = words("""
    regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc
    regprocedure regrole regtype
    """)
_ROWS = words("DELETE INSERT MERGE REPLACE UPDATE")


class TableAllowlist:
    """The tables of one catalog that are on one list."""

    def __init__(self, only: Sequence[str], catalog: Catalog, dialect: Dialect) -> None:
        self._dialect = dialect
        tables = admitted(only, catalog)
        self._places = frozenset((table.schema, table.name) for table in tables)
        self._names = frozenset(table.name.lower() for table in tables)
        self._views = frozenset(table.name.lower() for table in tables if "view" in table.kind)
        self._types = frozenset(
            column.type.lower().rpartition(".")[2].strip('"') for table in tables
            for column in table.columns
        )  # fmt: skip

    def admits(self, table: Table) -> bool:
        """Whether the table is on the list."""
        return (table.schema, table.name) in self._places

    def check_calls(self, judgement: Judgement) -> None:
        """Raises: TidegateError POLICY_TABLE for functions that tell of tables by their names."""
        for name in judgement.functions:
            lower = name.lower().rpartition(".")[2]
            revealing = lower in _REVEALING or lower.startswith(_REVEALING_STARTS)
            if revealing and lower not in _SILENT:
                raise _beside(f"`{lower}` could tell of other tables")

    def check_change(self, root: str) -> None:
        """Raises: TidegateError POLICY_TABLE for changes of anything but rows."""
        if root not in _ROWS:
            raise _beside("Only rows may be changed: INSERT, UPDATE, DELETE and MERGE")

    def check_names(self, tokens: list[Token], ctes: frozenset[str], blank: str = "\0") -> None:
        """Check every name that is where a table can be; those that begin with `blank` are
        ours. Raises: TidegateError POLICY_TABLE."""
        for number in table_names(tokens, self._dialect):
            name = tokens[number].text.lower()
            after = tokens[number + 1].key if number + 1 < len(tokens) else ""
            called = after == "(" and name in _IN_TABLES_PLACE
            if name in self._names or name in ctes or name.startswith(blank) or called:
                continue
            if name in self._dialect.dummy_tables:
                continue
            raise table_refused(tokens[number].text)

    def check_types(self, parsed: ParsedStatement) -> None:
        """PostgreSQL knows every table as a type, too, and has types that are tables' names.

        Raises: TidegateError POLICY_TABLE.
        """
        if not self._dialect.tables_are_types:
            return
        tokens = parsed.tokens
        for token in tokens:
            if token.kind in (WORD, NAME) and token.text.lower() in _OBJECTS:
                raise _beside(f"`{token.text.lower()}` could tell of other tables")
        for node in parsed.tree.walk():
            kind = type(node).__name__
            if kind == "DataType":
                name = getattr(node.this, "name", "")
                own = str(node.args.get("kind") or "").lower().rpartition(".")[2].strip('"')
                if name == "USERDEFINED" and own not in self._types:
                    raise _beside("Casts to types of the database's own could tell of other tables")
            elif kind in ("Alias", "TableAlias") and _is_typed_text(parsed, node):
                raise _beside("Casts to types of the database's own could tell of other tables")

    def check_plan(self, named: Iterable[str]) -> None:
        """Raises: TidegateError POLICY_TABLE for a view: its plan names the tables that it
        reads."""
        for name in named:
            whole = name.lower()  # it may hold a dot
            if whole in self._views or whole.rpartition(".")[2] in self._views:
                raise _beside("The plan of a view would tell of the tables that it reads")


def table_refused_indirectly(statement: str) -> TidegateError:
    """The refusal of a statement that could reveal tables."""
    return _beside(f"{statement} could tell of other tables")


def _beside(reason: str) -> TidegateError:
    return TidegateError(Code.POLICY_TABLE, reason, details={"rule": TABLE_LIST_RULE})


def _is_typed_text(parsed: ParsedStatement, node: object) -> bool:
    """Whether what the parser takes for a name with an alias is `type 'text'`."""
    alias = getattr(node, "args", {}).get("alias")
    meta: dict[str, int] = getattr(alias, "meta", None) or {}
    token = parsed.written_at(meta.get("start", -1))
    return token is not None and token.kind == STRING
