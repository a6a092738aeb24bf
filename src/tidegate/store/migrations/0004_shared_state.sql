-- Tokens: what a server needs to check one by SCRAM-SHA-256. Older tokens have none: it cannot be
-- computed from their digest.
ALTER TABLE tokens ADD COLUMN scram_verifier TEXT;

-- Values that the processes on one state must agree on.
CREATE TABLE shared_secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE used_values (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    expires_at REAL NOT NULL,
    PRIMARY KEY (kind, value)
) STRICT, WITHOUT ROWID;
CREATE TABLE failures (
    key TEXT NOT NULL,
    at REAL NOT NULL
) STRICT;
CREATE INDEX failures_key ON failures (key, at);
CREATE TABLE locks (
    key TEXT PRIMARY KEY,
    until REAL NOT NULL
) STRICT, WITHOUT ROWID;
