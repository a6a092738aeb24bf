"""The state: its interface, and its databases of SQLite and PostgreSQL."""
