-- Seals of the rows that give rights (store/sealed_lists.py): for each area some lists, and a row of
-- the area `cluster` that says by which key. Empty without a key.
CREATE TABLE tidegate.seals (
    area text COLLATE "C" NOT NULL,
    part bigint NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    mac bytea NOT NULL,
    PRIMARY KEY (area, part)
);
