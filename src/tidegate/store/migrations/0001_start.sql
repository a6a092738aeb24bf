-- Counts the changes of rights, so that every process can tell cheaply whether what it keeps in
-- memory still holds. Use of a token and history are no change of rights and are not counted.
CREATE TABLE generations (
    area TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO generations VALUES ('sources', 0), ('tokens', 0);

-- Sources. `rules` is a JSON object of the settings that have no column, such as masks and row
-- filters.
CREATE TABLE sources (
    name TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    engine TEXT NOT NULL,
    dialect TEXT NOT NULL,
    access TEXT NOT NULL,
    agents TEXT NOT NULL,
    approval_for TEXT NOT NULL,
    tags TEXT NOT NULL,
    rules TEXT NOT NULL DEFAULT '{}'
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

-- Tokens. `sources`, `tags` and `tables` are allowlists, NULL without one. `scram_verifier` is what
-- a server needs to check the token by SCRAM-SHA-256. `proxy` says whether the holder names the
-- callers for whom it speaks, `owner` whose token it is. One change of the holder may be about
-- `max_rows_changed` rows, NULL: any number. `maker` is the id of the account that made the token,
-- empty for the command line.
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
    revoked_at REAL,
    tags TEXT,
    tables TEXT,
    scram_verifier TEXT,
    proxy INTEGER NOT NULL DEFAULT 0,
    owner TEXT NOT NULL DEFAULT '',
    max_rows_changed INTEGER,
    maker TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX tokens_active_name ON tokens (name) WHERE revoked_at IS NULL;
CREATE TRIGGER tokens_added AFTER INSERT ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_changed
AFTER UPDATE OF name, digest, scope, sources, tags, tables, expires_at, revoked_at ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_removed AFTER DELETE ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_stay_revoked BEFORE UPDATE OF revoked_at ON tokens
WHEN OLD.revoked_at IS NOT NULL BEGIN
    SELECT RAISE(ABORT, 'a revoked token stays revoked');
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

-- Operators: the accounts of people who answer and look, the links that sign them in, and their
-- sessions. `inviter` is the id of the account by whose invitation this one was made, or of that
-- account's own inviter, and so on; empty for the command line. `roles_by` is who gave the roles
-- last, as the audit log names it.
CREATE TABLE operators (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    salt BLOB NOT NULL,
    hash BLOB NOT NULL,
    roles TEXT NOT NULL,
    created_at REAL NOT NULL,
    inviter TEXT NOT NULL DEFAULT '',
    roles_by TEXT NOT NULL DEFAULT ''
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

-- Approvals: what a person was asked, and what was answered. One question waits for each digest.
-- The caller waits for the answer until `waits_until`. A grant is valid until `until`, for
-- `most_uses` uses. `run` is what became of the call. `refused` is how many calls came again after
-- the answer and were refused, the last of them, and why.
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
    dry_run TEXT,
    waits_until REAL,
    until REAL,
    uses INTEGER NOT NULL DEFAULT 0,
    most_uses INTEGER NOT NULL DEFAULT 1,
    run TEXT,
    refused TEXT
) STRICT;
CREATE UNIQUE INDEX approvals_pending ON approvals (digest) WHERE state = 'pending';
CREATE INDEX approvals_digest ON approvals (digest, state);
CREATE INDEX approvals_state ON approvals (state, asked_at);

-- Messages of the webhook about approvals: those that wait to be sent, and which were sent. One of
-- state `listed` waits for the next digest. `followed`: the answer gets a message.
CREATE TABLE webhook_messages (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    approval TEXT NOT NULL,
    body BLOB NOT NULL,
    state TEXT NOT NULL,
    made_at REAL NOT NULL,
    next_at REAL NOT NULL,
    attempts INTEGER NOT NULL,
    followed INTEGER NOT NULL
) STRICT;
CREATE INDEX webhook_messages_approval ON webhook_messages (approval);
CREATE INDEX webhook_messages_waiting ON webhook_messages (state, next_at)
    WHERE state IN ('waiting', 'listed');
CREATE INDEX webhook_messages_followed ON webhook_messages (approval) WHERE followed;

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

-- History: the statements that ran.
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
-- and few are ever searched for.
CREATE TABLE history_indexed (upto INTEGER NOT NULL) STRICT;
INSERT INTO history_indexed VALUES (0);
CREATE TRIGGER history_removed AFTER DELETE ON history
WHEN OLD.id <= (SELECT upto FROM history_indexed) BEGIN
    INSERT INTO history_words (history_words, rowid, text) VALUES ('delete', OLD.id, OLD.text);
END;

-- Events that the audit log could not take, kept until a process can write them there.
CREATE TABLE unrecorded_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event BLOB NOT NULL
) STRICT;

-- Windows and tabs of the console, which the workbench's tools open and list. A source is known by
-- its id, so that another source of the same name has other windows. A window belongs to an
-- operator, by name, or to no one (empty). A page shows all windows of its operator: the time when
-- it was last open is one for all of them.
CREATE TABLE windows (
    id TEXT PRIMARY KEY,
    source_id TEXT NOT NULL,
    opened_at REAL NOT NULL,
    focused_at REAL NOT NULL,
    owner TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX windows_owner ON windows (owner, source_id);
CREATE TABLE window_pages (owner TEXT PRIMARY KEY, seen_at REAL NOT NULL) STRICT, WITHOUT ROWID;
-- `text` is what a person writes in a tab. A page writes only over the version that it has read.
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
    focused_at REAL NOT NULL,
    text TEXT NOT NULL DEFAULT '',
    position REAL NOT NULL DEFAULT 0,
    opened_by TEXT NOT NULL DEFAULT '',
    opened_at REAL NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX tabs_one_active ON tabs (window_id) WHERE is_active;
CREATE INDEX tabs_focused ON tabs (focused_at);
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

-- Calls that go on after their request was answered, without their results.
CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    surface TEXT NOT NULL,
    tool TEXT NOT NULL,
    server TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    alive_until REAL NOT NULL,
    status TEXT NOT NULL,
    waiting INTEGER NOT NULL,
    changes INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_by_time ON tasks (created_at);

-- Questions in plain language: confirmed statements, and answers that a later question continues.
CREATE TABLE confirmed_pairs (
    id TEXT PRIMARY KEY,
    source_id TEXT NOT NULL,
    question TEXT NOT NULL,
    sql TEXT NOT NULL,
    slots TEXT NOT NULL,
    tables TEXT NOT NULL,
    schema_digest TEXT NOT NULL,
    result_digest TEXT NOT NULL,
    confirmed_by TEXT NOT NULL,
    confirmed_at REAL NOT NULL,
    UNIQUE (source_id, question)
) STRICT;
CREATE TABLE answers (
    handle TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    source_id TEXT NOT NULL,
    question TEXT NOT NULL,
    sql TEXT NOT NULL,
    answered_at REAL NOT NULL
) STRICT;
CREATE INDEX answers_by_time ON answers (answered_at);
-- What each caller used of each kind of provider on each day (UTC): of the language model in tokens,
-- of embeddings in characters.
CREATE TABLE provider_use (
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    day TEXT NOT NULL,
    units INTEGER NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (actor, kind, day)
) STRICT, WITHOUT ROWID;

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
