-- The gates of a state (`store/gates.py`).
CREATE TABLE gates (
    id TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    place TEXT NOT NULL,
    public_key TEXT NOT NULL,
    processes INTEGER NOT NULL,
    head BLOB NOT NULL,
    renewed_at REAL NOT NULL,
    expires_at REAL NOT NULL
) STRICT;
