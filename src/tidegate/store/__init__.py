"""The state: its interface, and its database of SQLite."""
