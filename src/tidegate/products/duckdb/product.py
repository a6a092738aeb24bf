"""What DuckDB adds to the kernel."""

from tidegate.product import EngineEntry, Product

PRODUCT = Product(
    "duckdb",
    engines={
        "duckdb": EngineEntry(
            *("duckdb", "duckdb", "tidegate.engines.duckdb", "DuckdbEngine", "duckdb"),
            compares_rows=True,
            options=("memory_limit", "threads", "timeout", "workers"),
            path_reader="tidegate.engines.common.url:file_of",
            own_functions=True,
            reader="tidegate.engines.duckdb.url:DuckUrl",
        ),
        "files": EngineEntry(
            *("files", "duckdb", "tidegate.engines.duckdb", "FilesEngine", "duckdb"),
            options=("files", "memory_limit", "threads", "workers"),
            reads_only=True,
            path_reader="tidegate.engines.common.url:folder_path",
            reader="tidegate.engines.duckdb.url:FolderUrl",
        ),
    },
    dialects={"duckdb": "tidegate.sql.dialects.duckdb"},
)
