-- What a caller's later calls need at whichever process they come to (`store/carried.py`), encrypted.
CREATE TABLE carried_values (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    part INTEGER NOT NULL,
    owner TEXT NOT NULL,
    body BLOB NOT NULL,
    expires_at REAL NOT NULL,
    PRIMARY KEY (kind, id, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX carried_values_of_owner ON carried_values (kind, owner, expires_at) WHERE part = 0;
CREATE INDEX carried_values_ends ON carried_values (expires_at);
