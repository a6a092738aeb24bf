"""What runs statements: the interface of engines, what they share, SQLite and PostgreSQL."""
