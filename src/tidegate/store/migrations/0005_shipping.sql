-- How far each destination has the segments of a gate's record. A gate is one directory of segments.
-- `followed`: the destination has once had as much of the record as it must.
CREATE TABLE shipping_destinations (
    gate TEXT NOT NULL,
    name TEXT NOT NULL,
    followed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (gate, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE shipping_positions (
    gate TEXT NOT NULL,
    destination TEXT NOT NULL,
    segment TEXT NOT NULL,
    offset INTEGER NOT NULL,
    number INTEGER NOT NULL,
    complete INTEGER NOT NULL,
    PRIMARY KEY (gate, destination, segment),
    FOREIGN KEY (gate, destination) REFERENCES shipping_destinations (gate, name) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
