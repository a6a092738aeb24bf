-- Messages between processes (store/messages.py), numbered by the counter of their topic; an empty
-- `recipient` means all others.
INSERT INTO tidegate.generations VALUES ('messages', 0);
CREATE TABLE tidegate.messages (
    n bigint PRIMARY KEY,
    sender text COLLATE "C" NOT NULL,
    recipient text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    sent_at float8 NOT NULL
);
