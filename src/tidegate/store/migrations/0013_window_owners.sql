-- Windows belong to an operator, by name, or to no one (empty). Those there are go to the only
-- operator, where there is one. A page shows all windows of its operator, so that it is one time
-- for all of them when a page was last open.
ALTER TABLE windows ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE windows SET owner = (SELECT name FROM operators)
    WHERE (SELECT count(*) FROM operators) = 1;
ALTER TABLE windows DROP COLUMN seen_at;
CREATE INDEX windows_owner ON windows (owner, source_id);
CREATE TABLE window_pages (owner TEXT PRIMARY KEY, seen_at REAL NOT NULL) STRICT, WITHOUT ROWID;
-- What a person writes in a tab. A page writes only over the version that it has read.
ALTER TABLE tabs ADD COLUMN text TEXT NOT NULL DEFAULT '';
ALTER TABLE tabs ADD COLUMN position REAL NOT NULL DEFAULT 0;
ALTER TABLE tabs ADD COLUMN opened_by TEXT NOT NULL DEFAULT '';
ALTER TABLE tabs ADD COLUMN opened_at REAL NOT NULL DEFAULT 0;
ALTER TABLE tabs ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
UPDATE tabs SET position = serial, opened_at = focused_at;
-- The tabs that were closed last, to be opened again.
CREATE TABLE closed_tabs (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    source_id TEXT NOT NULL,
    window_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    "table" TEXT,
    "database" TEXT,
    "schema" TEXT,
    text TEXT NOT NULL,
    position REAL NOT NULL,
    opened_by TEXT NOT NULL,
    opened_at REAL NOT NULL,
    focused_at REAL NOT NULL,
    version INTEGER NOT NULL
) STRICT;
-- What happened to tabs last, for the pages that are open in any process.
CREATE TABLE tab_events (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    tab_id TEXT NOT NULL,
    action TEXT NOT NULL,
    "by" TEXT NOT NULL
) STRICT;
