"""Cloud APIs queried as SQL: their engines, dialect, the tools of document 002, and commands."""
