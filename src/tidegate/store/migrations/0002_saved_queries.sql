-- Saved queries. A source is known by its id, an owner by name, empty where the operator is gone.
-- `version` grows with every change, and what it was about has a row in `query_versions` where the
-- text, the parameters or the chart changed: the last of these is `text_version`. `chart` is JSON
-- that the console's page understands, empty without one.
CREATE TABLE saved_queries (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source_id TEXT NOT NULL,
    "database" TEXT,
    "schema" TEXT,
    owner TEXT NOT NULL,
    folder TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    shared_with TEXT NOT NULL,
    version INTEGER NOT NULL,
    text_version INTEGER NOT NULL,
    text_by TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at REAL NOT NULL
) STRICT;
CREATE INDEX saved_queries_source ON saved_queries (source_id);
CREATE INDEX saved_queries_owner ON saved_queries (owner);
CREATE TABLE query_versions (
    query_id TEXT NOT NULL REFERENCES saved_queries (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    parameters TEXT NOT NULL,
    chart TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at REAL NOT NULL,
    PRIMARY KEY (query_id, version)
) STRICT, WITHOUT ROWID;
-- Which version each operator ran last, and in which tabs a saved query is open.
CREATE TABLE query_runs (
    query_id TEXT NOT NULL REFERENCES saved_queries (id) ON DELETE CASCADE,
    operator TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (query_id, operator)
) STRICT, WITHOUT ROWID;
CREATE TABLE query_tabs (
    tab_id TEXT PRIMARY KEY,
    query_id TEXT NOT NULL REFERENCES saved_queries (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX query_tabs_query ON query_tabs (query_id);
