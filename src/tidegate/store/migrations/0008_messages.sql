-- Messages between processes (`store/messages.py`), numbered by the counter of their topic; an empty
-- `recipient` means all others.
INSERT INTO generations VALUES ('messages', 0);
CREATE TABLE messages (
    n INTEGER PRIMARY KEY,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    sent_at REAL NOT NULL
) STRICT;
