-- The MACs of rows that give no right and are trusted (`store/stamps.py`). Empty without a key.
CREATE TABLE stamps (
    area TEXT NOT NULL,
    name TEXT NOT NULL,
    mac BLOB NOT NULL,
    PRIMARY KEY (area, name)
) STRICT, WITHOUT ROWID;
