-- Changes whose rows can be put back. An image is encrypted with a key of its own; to forget a
-- change is to remove both.
CREATE TABLE changes (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    source_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    made_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    state TEXT NOT NULL,
    tables TEXT NOT NULL,
    rows INTEGER NOT NULL,
    size INTEGER NOT NULL,
    approval TEXT NOT NULL,
    call_id TEXT NOT NULL,
    undoes TEXT NOT NULL,
    undone_by TEXT NOT NULL,
    database TEXT NOT NULL
) STRICT;
CREATE INDEX changes_by_source ON changes (source_id, serial);
CREATE INDEX changes_by_approval ON changes (approval) WHERE approval <> '';
CREATE INDEX changes_by_expiry ON changes (expires_at);
CREATE TABLE change_keys (id TEXT PRIMARY KEY, key BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE change_images (id TEXT PRIMARY KEY, image BLOB NOT NULL) STRICT;
-- The most rows that one change of the holder of a token may be about; NULL: any number.
ALTER TABLE tokens ADD COLUMN max_rows_changed INTEGER;
