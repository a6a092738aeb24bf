-- What a caller's later calls need at whichever gate they come to (store/carried.py), encrypted.
CREATE TABLE tidegate.carried_values (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    part bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    expires_at double precision NOT NULL,
    PRIMARY KEY (kind, id, part)
);
CREATE INDEX carried_values_of_owner ON tidegate.carried_values (kind, owner, expires_at)
    WHERE part = 0;
CREATE INDEX carried_values_ends ON tidegate.carried_values (expires_at);
