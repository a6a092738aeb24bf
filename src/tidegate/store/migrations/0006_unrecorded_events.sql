-- Events that the audit log could not take, kept until a process can write them there.
CREATE TABLE unrecorded_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event BLOB NOT NULL
) STRICT;
