-- Edits of rows that a person has staged in a tab and not yet made, sealed: they hold rows of
-- databases. They go when their tab is neither open nor to be opened again.
CREATE TABLE staged_edits (
    tab_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    version INTEGER NOT NULL,
    changed_at REAL NOT NULL,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
