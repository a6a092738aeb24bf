-- People who answer and look: their accounts, the links that sign them in, and their sessions.
CREATE TABLE operators (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    salt BLOB NOT NULL,
    hash BLOB NOT NULL,
    roles TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE TABLE operator_links (
    digest BLOB PRIMARY KEY,
    operator TEXT NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    expires_at REAL NOT NULL
);
CREATE TABLE operator_sessions (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    operator TEXT NOT NULL REFERENCES operators (id) ON DELETE CASCADE,
    signed_in_by TEXT NOT NULL,
    created_at REAL NOT NULL,
    seen_at REAL NOT NULL,
    ends_at REAL NOT NULL,
    confirmed_at REAL,
    address TEXT NOT NULL,
    browser TEXT NOT NULL
);
CREATE INDEX operator_sessions_operator ON operator_sessions (operator);
-- Until when the caller waits for the answer; a grant for some minutes; what became of the call.
ALTER TABLE approvals ADD COLUMN waits_until REAL;
ALTER TABLE approvals ADD COLUMN until REAL;
ALTER TABLE approvals ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN most_uses INTEGER NOT NULL DEFAULT 1;
ALTER TABLE approvals ADD COLUMN run TEXT;
-- The operator whose token it is.
ALTER TABLE tokens ADD COLUMN owner TEXT NOT NULL DEFAULT '';
