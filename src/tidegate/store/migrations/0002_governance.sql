-- Approvals: what a person was asked, and what was answered. One question waits for each digest.
CREATE TABLE approvals (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'allowed', 'denied', 'used', 'expired')),
    actor TEXT NOT NULL,
    subject TEXT NOT NULL,
    asked_at REAL NOT NULL,
    askers INTEGER NOT NULL,
    decided_at REAL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    ended_at REAL,
    rehearsal TEXT
) STRICT;
CREATE UNIQUE INDEX approvals_pending ON approvals (digest) WHERE state = 'pending';
CREATE INDEX approvals_digest ON approvals (digest, state);
CREATE INDEX approvals_state ON approvals (state, asked_at);

-- The desk: windows and tabs of the console, which the workbench's tools open and list. A source is
-- known by its id: another of the same name has another desk. `seen_at` is when a page showed it.
CREATE TABLE windows (
    id TEXT PRIMARY KEY,
    source_id TEXT NOT NULL,
    opened_at REAL NOT NULL,
    focused_at REAL NOT NULL,
    seen_at REAL
) STRICT, WITHOUT ROWID;
CREATE TABLE tabs (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    window_id TEXT NOT NULL REFERENCES windows (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    "table" TEXT,
    "database" TEXT,
    "schema" TEXT,
    is_active INTEGER NOT NULL,
    focused_at REAL NOT NULL
) STRICT;
CREATE UNIQUE INDEX tabs_one_active ON tabs (window_id) WHERE is_active;
CREATE INDEX tabs_focused ON tabs (focused_at);

-- Tokens: an allowlist by tag beside the one by name, and one of tables.
ALTER TABLE tokens ADD COLUMN tags TEXT;
ALTER TABLE tokens ADD COLUMN tables TEXT;
DROP TRIGGER tokens_changed;
CREATE TRIGGER tokens_changed
AFTER UPDATE OF name, digest, scope, sources, tags, tables, expires_at, revoked_at ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;

-- Pairing: requests for a token, and codes that an operator approved and a client has yet to exchange.
CREATE TABLE pairings (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    client TEXT NOT NULL,
    address TEXT NOT NULL,
    challenge TEXT NOT NULL,
    wanted TEXT NOT NULL,
    asked_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    state TEXT NOT NULL,
    token_name TEXT NOT NULL,
    granted TEXT
) STRICT, WITHOUT ROWID;

-- Sources: what an operator set beside the settings that have columns (masks, row filters).
ALTER TABLE sources ADD COLUMN rules TEXT NOT NULL DEFAULT '{}';
