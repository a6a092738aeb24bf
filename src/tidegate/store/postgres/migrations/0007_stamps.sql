-- The MACs of rows that give no right and are trusted (store/stamps.py). Empty without a key.
CREATE TABLE tidegate.stamps (
    area text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    mac bytea NOT NULL,
    PRIMARY KEY (area, name)
);
