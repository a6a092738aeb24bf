"""DuckDB: its files, and folders of CSV, Parquet and Excel files; its engines and dialect."""
