-- Whether the holder of a token is a proxy that names the callers for whom it speaks.
ALTER TABLE tokens ADD COLUMN proxy INTEGER NOT NULL DEFAULT 0;
