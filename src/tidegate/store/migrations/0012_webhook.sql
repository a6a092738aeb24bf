-- Messages of the webhook about questions: those that wait to be sent, and which were sent. One of
-- state `listed` waits for the next digest. `followed`: the answer to the question gets a message.
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
