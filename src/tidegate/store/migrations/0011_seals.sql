-- Seals of the rows that give rights (`store/sealed_lists.py`): for each area some lists, and a row of
-- the area `cluster` that says by which key. Empty without a key.
CREATE TABLE seals (
    area TEXT NOT NULL,
    part INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    mac BLOB NOT NULL,
    PRIMARY KEY (area, part)
) STRICT;
