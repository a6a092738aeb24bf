-- Counts the changes of rights, so that every process can tell cheaply whether what it keeps in
-- memory still holds. Use of a token and history are no change of rights and are not counted.
CREATE TABLE generations (
    area TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO generations VALUES ('sources', 0), ('tokens', 0);

CREATE TABLE sources (
    name TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    engine TEXT NOT NULL,
    dialect TEXT NOT NULL,
    external_access TEXT NOT NULL,
    ai_policy TEXT NOT NULL,
    safe_mode TEXT NOT NULL,
    tags TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sources_added AFTER INSERT ON sources BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'sources';
END;
CREATE TRIGGER sources_changed AFTER UPDATE ON sources BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'sources';
END;
CREATE TRIGGER sources_removed AFTER DELETE ON sources BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'sources';
END;

CREATE TABLE tokens (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    sources TEXT,
    created_at REAL NOT NULL,
    expires_at REAL,
    last_used_at REAL,
    revoked_at REAL
) STRICT;
CREATE UNIQUE INDEX tokens_active_name ON tokens (name) WHERE revoked_at IS NULL;

CREATE TRIGGER tokens_added AFTER INSERT ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_changed
AFTER UPDATE OF name, digest, scope, sources, expires_at, revoked_at ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_removed AFTER DELETE ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_stay_revoked BEFORE UPDATE OF revoked_at ON tokens
WHEN OLD.revoked_at IS NOT NULL BEGIN
    SELECT RAISE(ABORT, 'a revoked token stays revoked');
END;

CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    source TEXT NOT NULL,
    actor TEXT NOT NULL,
    surface TEXT NOT NULL,
    tool TEXT NOT NULL,
    "database" TEXT NOT NULL,
    dialect TEXT NOT NULL,
    text TEXT NOT NULL,
    elapsed_ms REAL NOT NULL,
    row_count INTEGER NOT NULL,
    success INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;
CREATE INDEX history_at ON history (at, id);

CREATE VIRTUAL TABLE history_words USING fts5 (
    text,
    content = 'history',
    content_rowid = 'id',
    tokenize = 'unicode61 remove_diacritics 2'
);
-- Words are indexed at a search, up to the entry of this number: every call adds an entry,
-- and few are ever looked for.
CREATE TABLE history_indexed (upto INTEGER NOT NULL) STRICT;
INSERT INTO history_indexed VALUES (0);
CREATE TRIGGER history_removed AFTER DELETE ON history
WHEN OLD.id <= (SELECT upto FROM history_indexed) BEGIN
    INSERT INTO history_words (history_words, rowid, text) VALUES ('delete', OLD.id, OLD.text);
END;
