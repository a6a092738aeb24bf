-- Questions in plain language: confirmed statements, answers that a later question continues, and
-- what each caller used of the model on each day (UTC).
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

CREATE TABLE model_use (
    actor TEXT NOT NULL,
    day TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (actor, day)
) STRICT, WITHOUT ROWID;
