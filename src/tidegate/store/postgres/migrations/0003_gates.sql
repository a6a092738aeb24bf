-- The gates of a state (store/gates.py).
CREATE TABLE tidegate.gates (
    id text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL,
    public_key text COLLATE "C" NOT NULL,
    processes integer NOT NULL,
    head bytea NOT NULL,
    renewed_at float8 NOT NULL,
    expires_at float8 NOT NULL
);
