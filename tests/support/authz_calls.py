"""How every tool, resource and listing is called, and which grid says what comes of it.

A tool without a row here fails `test_rows.py`. `{database}`, `{schema}` and `{tab}` in arguments
stand for those of the shop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from support.authz_engines import Spelling
from support.authz_grids import (
    ADMINISTERS,
    CONFIRMED,
    CONFIRMED_CHANGES,
    CONFIRMED_NEVER,
    CONFIRMED_UNQUALIFIED,
    DASHBOARD,
    DESTRUCTIVE,
    EXPLAINS,
    HARMLESS,
    INSERTS,
    MORE,
    NAMES,
    NEVER,
    READS,
    READS_ONLY,
    STATE,
    STATISTICS,
    TABS,
    UNQUALIFIED,
    WITHOUT_PLAN,
    WRITER_NAMES,
    WRITER_STATE,
    WRITES,
    Grid,
)
from tidegate.surfaces.registry import SURFACES

RUNS = {
    "read": READS,
    "write": WRITES,
    "update": WRITES,
    "unqualified": UNQUALIFIED,
    "destructive": DESTRUCTIVE,
    "administer": ADMINISTERS,
    "session": NEVER,
    "admin": NEVER,
    "unknown": NEVER,
    "several": NEVER,
}
READS_ALONE = {
    "read": READS,
    "write": READS_ONLY,
    "update": READS_ONLY,
    "unqualified": READS_ONLY,
    "destructive": READS_ONLY,
    "administer": READS_ONLY,
    "session": NEVER,
    "admin": NEVER,
    "unknown": NEVER,
    "several": NEVER,
}
QUERIES_ALONE = {effect: READS if effect == "read" else NEVER for effect in RUNS}
"""What takes queries and refuses everything else before the gate is asked."""
EXPLAINED = {"read": READS}
"""And of other effects what the engine has plans of: see `explained`."""
CONFIRMS = {
    "read": HARMLESS,
    "write": HARMLESS,
    "update": CONFIRMED_CHANGES,
    "unqualified": CONFIRMED_UNQUALIFIED,
    "destructive": CONFIRMED,
    "administer": HARMLESS,
    "session": CONFIRMED_NEVER,
    "admin": CONFIRMED_NEVER,
    "unknown": CONFIRMED_NEVER,
    "several": CONFIRMED_NEVER,
}
CHANGES = frozenset({"write", "update", "unqualified", "destructive"})
"""The effects whose `ok` changes the database."""


def _here(*named: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Those of the surfaces that are there, with which each begins."""
    return tuple(each for each in named if each[0] in SURFACES)


class Row(NamedTuple):
    """How one tool is called: `takes` names the argument that says the source.

    A tool with two ways has a row for each: a word behind its name tells them apart.
    `text` is the argument that a statement goes in, and `grids` has the grid of each effect; a
    tool that takes no statement has one grid, under the effect that it has itself.
    """

    takes: str
    arguments: dict[str, Any]
    grids: dict[str, Grid]
    text: str | None = None
    explains: bool = False


ID, NAME, HANDLE, TAB, URI = "connection_id", "source", "handle", "tab_id", "uri"
URL, OPENED = "url", "connectionId"
"""The name of the source in place of a URL; and the id of a connection that is opened before."""


def _names(**arguments: Any) -> Row:
    return Row(ID, arguments, {"read": NAMES})


def _state(**arguments: Any) -> Row:
    return Row(ID, arguments, {"read": STATE})


def _reads(**arguments: Any) -> Row:
    return Row(ID, arguments, {"read": READS})


ELSEWHERE = {
    "read": {
        setting: {who: "engine.unsupported" if word == "ok" else word for who, word in row.items()}
        for setting, row in STATE.items()
    }
}
"""What describes a PostgreSQL server, of a source that is none."""
UNSEARCHED = {
    "read": {
        setting: {who: "engine.unsupported" if word == "ok" else word for who, word in row.items()}
        for setting, row in NAMES.items()
    }
}
"""What needs the words or vectors of a database that has no search here."""
PHRASE = {"confirmation_phrase": "I understand this is irreversible"}
CONFIRM = {"confirm": PHRASE["confirmation_phrase"]}
_ALL_ROWS: dict[tuple[str, str], Row] = {
    ("core", "search"): Row(NAME, {"words": "orders"}, {"read": NAMES}),
    ("core", "describe"): Row(NAME, {"tables": ["orders"]}, {"read": NAMES}),
    ("core", "query"): Row(NAME, {}, RUNS, "sql"),
    ("core", "query confirmed"): Row(NAME, CONFIRM, CONFIRMS, "sql"),
    ("core", "explain"): Row(NAME, {}, EXPLAINED, "sql", explains=True),
    ("core", "more"): Row(HANDLE, {}, {"read": MORE}),
    ("workbench", "connect"): _state(),
    ("workbench", "disconnect"): Row(ID, {}, {"read": WRITER_STATE}),
    ("workbench", "get_connection_status"): _state(),
    ("workbench", "list_databases"): _names(),
    ("workbench", "list_schemas"): _names(),
    ("workbench", "list_tables"): _names(include_row_counts=True),
    ("workbench", "describe_table"): _names(table="orders"),
    ("workbench", "get_table_ddl"): _names(table="orders"),
    ("workbench", "execute_query"): Row(ID, {}, RUNS, "query"),
    ("workbench", "confirm_destructive_operation"): Row(ID, PHRASE, CONFIRMS, "query"),
    ("workbench", "export_data"): Row(ID, {"format": "csv"}, READS_ALONE, "query"),
    ("workbench", "switch_database"): Row(ID, {"database": "{database}"}, {"read": WRITER_NAMES}),
    ("workbench", "switch_schema"): Row(ID, {"schema": "{schema}"}, {"read": WRITER_NAMES}),
    ("workbench", "open_connection_window"): _state(),
    ("workbench", "open_table_tab"): _names(table_name="orders"),
    ("workbench", "focus_query_tab"): Row(TAB, {}, {"read": TABS}),
    ("workbench", "search_query_history"): _state(query=""),
    ("workbench", "find_tables"): _names(words="ord"),
    ("workbench", "search_schema"): _names(term="ord"),
    ("workbench", "list_indexes"): _names(table="orders"),
    ("workbench", "list_foreign_keys"): _names(table="orders"),
    ("workbench", "browse_table"): _reads(table="customers"),
    ("workbench", "count_rows"): _reads(table="customers"),
    ("workbench", "explain_query"): Row(ID, {}, EXPLAINED, "query", explains=True),
    ("workbench", "get_server_dashboard"): Row(ID, {}, {"read": STATE}),
    ("workbench", "insert_rows"): Row(
        ID,
        {"table": "customers", "columns": ["id", "full_name"], "rows": [[9, "x"]]},
        {"write": INSERTS},
    ),
    ("workbench", "tablepro://connections/{id}/schema"): Row(URI, {}, {"read": NAMES}),
    ("workbench", "tablepro://connections/{id}/history{?limit,search,date_filter}"): Row(
        URI, {"?": "?limit=5&search=orders&date_filter=today"}, {"read": STATE}
    ),
    ("postgres", "query_database"): Row(NAME, {"mode": "sql"}, READS_ALONE, "query"),
    ("postgres", "get_schema_info"): Row(NAME, {"table_name": "orders"}, {"read": NAMES}),
    ("postgres", "similarity_search"): Row(
        NAME, {"table_name": "notes", "query_text": "Ada"}, {"read": READS}
    ),
    ("postgres", "read_resource"): Row(NAME, {"uri": "pg://stat/activity"}, ELSEWHERE),
    ("postgres", "pg://system_info"): Row(URI, {}, ELSEWHERE),
    ("postgres", "pg://settings"): Row(URI, {}, ELSEWHERE),
    ("postgres", "pg://stat/activity"): Row(URI, {}, ELSEWHERE),
    ("postgres", "pg://stat/replication"): Row(URI, {}, ELSEWHERE),
    ("jdbc", "connect"): Row(URL, {}, {"read": STATE}),
    ("jdbc", "discover"): Row(OPENED, {"table": "orders"}, {"read": NAMES}),
    ("jdbc", "record"): Row(OPENED, {}, QUERIES_ALONE, "query"),
    ("jdbc", "close"): Row(OPENED, {}, {"read": STATE}),
}
"""By surface and the name of a tool or the URI of a resource. `?` is a resource's query."""

ROWS = {key: row for key, row in _ALL_ROWS.items() if key[0] in SURFACES}
"""Those of the surfaces that are there."""

SERVER_ROWS: dict[tuple[str, str], Row] = {
    ("workbench", "get_server_dashboard"): Row(ID, {"panels": ["metrics"]}, {"read": DASHBOARD}),
}
"""What is called otherwise, or has another outcome, where the source is a server."""

ENGINE_ROWS: dict[tuple[str, str, str], Row] = {
    ("postgres", "postgres", "read_resource"): Row(
        NAME, {"uri": "pg://stat/activity"}, {"read": STATISTICS}
    ),
    ("mariadb", "postgres", "similarity_search"): Row(
        NAME, {"table_name": "notes", "query_text": "Ada"}, UNSEARCHED
    ),
    ("postgres", "postgres", "pg://system_info"): Row(URI, {}, {"read": DASHBOARD}),
    ("postgres", "postgres", "pg://settings"): Row(URI, {}, {"read": DASHBOARD}),
    ("postgres", "postgres", "pg://stat/activity"): Row(URI, {}, {"read": STATISTICS}),
    ("postgres", "postgres", "pg://stat/replication"): Row(URI, {}, {"read": STATISTICS}),
}
"""What has another outcome on one engine: by its name, the surface, and what is called."""


def explained(effect: str, spelling: Spelling) -> Grid:
    """What comes of asking for the plan of a statement."""
    if effect == "read":
        # The estimates of these engines come from what is hidden.
        return READS if spelling.plans_hidden else {**READS, "masked": EXPLAINS["masked"]}
    if effect in spelling.planned:
        return EXPLAINS
    return WITHOUT_PLAN if effect in spelling.without_plan else NEVER


LISTINGS = _here(
    ("core", "sources"),
    ("workbench", "list_connections"),
    ("workbench", "list_recent_tabs"),
    ("workbench", "tablepro://connections"),
)
"""What names no source, and shows those that its caller may see."""

WITHOUT_SOURCE = _here(("postgres", "generate_embedding"))
"""What uses no source at all, whatever the caller may see."""

OTHER_LANGUAGE = _here(
    ("datalog", "datalevin://{database}/schema"),
    *(("datalog", f"datalevin_{name}") for name in (
        "api_info", "open_database", "close_database", "query", "pull", "pull_many", "entity",
        "datoms", "search_datoms", "count_datoms", "fulltext_datoms", "transact", "open_kv",
        "close_kv", "kv_get", "kv_range", "kv_transact", "open_search_index",
        "close_search_index", "add_document", "remove_document", "clear_documents",
        "document_count", "document_indexed", "search_documents", "open_vector_index",
        "close_vector_index", "add_vector", "remove_vector", "vector_index_info",
        "vector_indexed", "vector_search",
    )),
    *(("cloud", name) for name in (
        "server_info", "list_providers", "list_services", "list_resources", "list_methods",
        "describe_resource", "describe_method", "list_registry", "pull_provider",
        "validate_select_query", "run_select_query", "run_mutation_query",
        "run_lifecycle_operation",
    )),
)  # fmt: skip
"""What asks no source that speaks SQL for anything. The rows of these are in
`products/datalog/contract/test_surface_rights.py` and
`products/cloud/surface/test_cloud_modes.py`."""

PROMPTS = _here(
    ("cloud", "write_safe_select"),
    ("postgres", "design-schema"),
    ("postgres", "diagnose-query-issue"),
    ("postgres", "explore-database"),
    ("postgres", "setup-semantic-search"),
)
"""By surface and name. They are texts: none of them reads a source."""

SEES = {
    "reader": {"never", "blocked"},
    "writer": {"never", "blocked"},
    "owner": {"never", "blocked"},
    "tagged": {"never", "blocked"},
    "oauth": {"never", "blocked"},
    "foreign": None,
    "anon": {"never", "blocked"},
    "stdio": {"never", "blocked"},
    "person": {"blocked"},
    "listed": {"never", "blocked"},
}
"""The sources that an actor does not see in a listing; None: it sees none of them."""
