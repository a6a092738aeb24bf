-- What each caller used of each kind of provider on each day (UTC): of the language model in tokens,
-- of embeddings in characters.
CREATE TABLE provider_use (
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    day TEXT NOT NULL,
    units INTEGER NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (actor, kind, day)
) STRICT, WITHOUT ROWID;
INSERT INTO provider_use (actor, kind, day, units, seconds)
    SELECT actor, 'language', day, tokens, seconds FROM model_use;
DROP TABLE model_use;
