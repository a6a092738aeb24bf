"""The tools of document 004, for PostgreSQL."""
