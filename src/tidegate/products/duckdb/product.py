"""What DuckDB adds to the kernel."""

from tidegate.product import DatabaseFiles, EngineEntry, Product

PRODUCT = Product(
    "duckdb",
    engines={
        "duckdb": EngineEntry(
            *("duckdb", "duckdb", "tidegate.products.duckdb.engine", "DuckdbEngine", "duckdb"),
            compares_rows=True,
            options=("memory_limit", "threads", "timeout", "workers"),
            plain_options=("memory_limit", "threads", "timeout", "workers"),
            path_reader="tidegate.engines.common.url:file_of",
            memory_reader="tidegate.engines.common.url:is_in_memory",
            pool=4,
            pool_option="workers",
            files=DatabaseFiles((".duckdb", ".ddb"), at=8, mark=b"DUCK"),
            own_functions=True,
            plan_limits=("max_plan_rows",),
            figures_hide=True,
            reader="tidegate.products.duckdb.engine.url:DuckUrl",
        ),
        "files": EngineEntry(
            *("files", "duckdb", "tidegate.products.duckdb.engine", "FilesEngine", "duckdb"),
            options=("files", "memory_limit", "threads", "workers"),
            plain_options=("memory_limit", "threads", "workers"),
            reads_only=True,
            plan_limits=("max_plan_rows",),
            figures_hide=True,
            path_reader="tidegate.engines.common.url:folder_path",
            extras_reader="tidegate.products.duckdb.folder_files:extras_of",
            pool=4,
            pool_option="workers",
            is_folder=True,
            reader="tidegate.products.duckdb.engine.url:FolderUrl",
        ),
    },
    dialects={"duckdb": "tidegate.products.duckdb.dialect"},
)
