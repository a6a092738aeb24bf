# ruff: noqa: E501
"""Changes beside masked columns, on every engine: `=` runs, `!` is refused.

`people.email`, `watched.email`, `accounts.email` and `holders.code` are masked; every hidden value
holds the word `secret`.
"""

from __future__ import annotations

MASKS = (
    ("people.email", "nothing"),
    ("watched.email", "hash"),
    ("accounts.email", "partial"),
    ("holders.code", "nothing"),
)

TABLES = (
    "CREATE TABLE people (id INTEGER PRIMARY KEY, tenant INTEGER, email VARCHAR(80),"
    " status VARCHAR(80), score INTEGER, CHECK (score < 100), UNIQUE (tenant, email))",
    "CREATE TABLE watched (id INTEGER PRIMARY KEY, email VARCHAR(80), status VARCHAR(80))",
    "CREATE TABLE copies (id INTEGER, note VARCHAR(200))",
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, email VARCHAR(80) UNIQUE, status VARCHAR(80))",
    "CREATE TABLE logins (id INTEGER PRIMARY KEY, account VARCHAR(80), note VARCHAR(80),"
    " FOREIGN KEY (account) REFERENCES accounts (email))",
    "CREATE TABLE codes (code VARCHAR(80) PRIMARY KEY, note VARCHAR(80))",
    "CREATE TABLE holders (id INTEGER PRIMARY KEY, code VARCHAR(80), note VARCHAR(80),"
    " FOREIGN KEY (code) REFERENCES codes (code))",
    "CREATE TABLE places (id INTEGER PRIMARY KEY, city VARCHAR(200))",
    "CREATE VIEW mails AS SELECT id, email AS contact, status FROM people",
    "INSERT INTO people VALUES (1, 7, 'secret1@mail.example', 'new', 1),"
    " (2, 7, 'secret2@mail.example', 'new', 2), (3, 8, 'secret1@mail.example', 'old', 3)",
    "INSERT INTO watched VALUES (1, 'secret3@mail.example', 'new')",
    "INSERT INTO accounts VALUES (1, 'secret4@mail.example', 'new')",
    "INSERT INTO codes VALUES ('secret5', 'a'), ('secret6', 'b')",
    "INSERT INTO holders VALUES (1, 'secret5', 'a')",
    "INSERT INTO places VALUES (1, 'Kyiv'), (2, 'Lviv')",
)

TRIGGERS = {
    "sqlite": (
        "CREATE TRIGGER watching AFTER UPDATE ON watched BEGIN"
        " INSERT INTO copies VALUES (new.id, new.email); END",
    ),
    "postgres": (
        "CREATE FUNCTION copy_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO copies VALUES (new.id, new.email); RETURN new; END $$",
        "CREATE TRIGGER watching AFTER UPDATE ON watched FOR EACH ROW EXECUTE FUNCTION copy_it()",
    ),
    "mysql": (
        "CREATE TRIGGER watching AFTER UPDATE ON watched FOR EACH ROW"
        " INSERT INTO copies VALUES (new.id, new.email)",
    ),
    "duckdb": (),
}

COMMON = """
= UPDATE people SET status = 'seen' WHERE id = 1
= UPDATE people SET score = score + 1, status = 'seen' WHERE score < 3
= UPDATE people SET status = (SELECT city FROM places WHERE id = 1) WHERE id = 2
= UPDATE people SET status = 'email' WHERE id = 1
= DELETE FROM people WHERE id = 3
= INSERT INTO people (id, tenant, status, score) VALUES (9, 7, 'new', 1)
= INSERT INTO people (id, status) SELECT id + 100, city FROM places
= UPDATE places SET city = (SELECT max(status) FROM people) WHERE id = 1
= UPDATE places SET city = (SELECT count(*) FROM people) WHERE id = 1
= DELETE FROM places WHERE id IN (SELECT id FROM people WHERE status = 'new')
= INSERT INTO places (id, city) SELECT p.id + 10, p.status FROM people p
= UPDATE codes SET note = 'x' WHERE code = 'secret6'
= UPDATE logins SET note = 'x' WHERE id = 1
= INSERT INTO copies (id, note) VALUES (1, 'x')
! UPDATE people SET email = 'x' WHERE id = 1
! UPDATE people SET status = email
! UPDATE people SET status = "email"
! UPDATE people SET status = 'x' WHERE email LIKE 'secret1%'
! UPDATE people SET status = 'x' WHERE EXISTS (SELECT 1 FROM people p WHERE p.email LIKE 'secret%')
! UPDATE people SET tenant = 7 WHERE id = 3
! DELETE FROM people WHERE email IS NOT NULL
! DELETE FROM people WHERE id IN (SELECT id FROM people ORDER BY email LIMIT 1)
! INSERT INTO people VALUES (9, 7, 'x', 'new', 1)
! INSERT INTO people (id, email) VALUES (9, 'x')
! INSERT INTO people SELECT id, id, city, city, id FROM places
! INSERT INTO places SELECT id, email FROM people
! INSERT INTO places (id, city) SELECT * FROM (SELECT id, email FROM people) x
! INSERT INTO places (id, city) SELECT id, contact FROM mails
! UPDATE mails SET status = 'x' WHERE id = 1
! UPDATE places SET city = (SELECT contact FROM mails LIMIT 1)
! UPDATE places SET city = (SELECT p.b FROM (SELECT * FROM people) AS p(a, t, b, c, d) LIMIT 1)
! INSERT INTO logins (id, account) VALUES (1, 'secret4@mail.example')
! UPDATE logins SET account = 'secret4@mail.example'
! DELETE FROM codes WHERE code = 'secret5'
! UPDATE codes SET code = 'x' WHERE code = 'secret5'
! WITH p AS (SELECT * FROM people) UPDATE places SET city = (SELECT max(status) FROM p)
"""

BY_ENGINE = {
    "postgres": """
= UPDATE people SET status = DEFAULT WHERE id = 1
= UPDATE people SET status = 'x' WHERE id = 1 RETURNING id, status
= INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET status = excluded.status
= INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT DO NOTHING
= UPDATE places SET city = p.status FROM people p WHERE p.id = places.id
= UPDATE people SET (status, score) = ('x', 4) WHERE id = 1
= DELETE FROM people USING places WHERE places.id = people.id AND places.city = 'Lviv'
= WITH d AS (DELETE FROM people WHERE id = 3 RETURNING status) INSERT INTO places (id, city) SELECT 9, status FROM d
= MERGE INTO places USING people ON places.id = people.id WHEN MATCHED THEN UPDATE SET city = people.status
! MERGE INTO people USING places ON places.id = people.id WHEN NOT MATCHED THEN INSERT VALUES (9, 9, 'x', 'y', 1)
! UPDATE people SET status = 'x' RETURNING *
! UPDATE people SET status = 'x' RETURNING people
! UPDATE people SET status = 'x' RETURNING old.email
! UPDATE people SET status = 'x' RETURNING old
! UPDATE people SET status = people::text
! UPDATE people p SET status = to_jsonb(p)::text
! UPDATE people p SET status = (p).email
= UPDATE people AS id SET status = id::text WHERE id.id = 1
! UPDATE places SET city = row_to_json(p)::text FROM people p
! UPDATE places SET city = x.c FROM people AS x(a, b, c, d, e)
! UPDATE places SET city = x.c FROM (TABLE people) AS x(a, b, c, d, e)
! UPDATE places SET city = leak(people) FROM people
! UPDATE places SET city = people.leak FROM people
! UPDATE places SET city = email(people) FROM people
! UPDATE places SET city = 'x' FROM places p NATURAL JOIN people
! UPDATE places SET city = 'x' FROM places p JOIN people USING (id, email)
! INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET status = people.email
! INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET status = excluded::text
! INSERT INTO people (id, tenant) VALUES (1, 7) ON CONFLICT (tenant, email) DO NOTHING
! INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET tenant = 8
! WITH d AS (DELETE FROM people RETURNING *) INSERT INTO places (id, city) SELECT id, email FROM d
! WITH d AS (DELETE FROM codes WHERE code = 'secret5' RETURNING note) INSERT INTO places (id, city) SELECT 9, note FROM d
! INSERT INTO places TABLE people
! UPDATE people SET status = U&"\\0065mail"
! UPDATE watched SET status = 'x'
! DELETE FROM watched
""",
    "mysql": """
= UPDATE people SET status = DEFAULT WHERE id = 1
= INSERT INTO people (id, status) VALUES (1, 'x') ON DUPLICATE KEY UPDATE status = VALUES(status)
= INSERT INTO people SET id = 19, status = 'x'
= INSERT IGNORE INTO people (id, status) VALUES (1, 'x')
= UPDATE people JOIN places ON people.id = places.id SET people.status = places.city
= UPDATE people SET status = 'x' ORDER BY id LIMIT 1
! INSERT INTO people (id, status) VALUES (1, 'x') ON DUPLICATE KEY UPDATE status = email
! INSERT INTO people (id, status) VALUES (1, 'x') ON DUPLICATE KEY UPDATE status = VALUES(email)
! INSERT INTO people (id, status) VALUES (1, 'x') ON DUPLICATE KEY UPDATE tenant = 8
! INSERT INTO people SET id = 9, email = 'x'
! REPLACE INTO people (id, status) VALUES (1, 'x')
! UPDATE people JOIN places ON people.id = places.id SET places.city = people.email
! UPDATE people SET status = 'x' ORDER BY email LIMIT 1
! UPDATE people SET status = EMAIL
! UPDATE people SET status = ema\u0130l
! UPDATE people SET status = `ema\u0130l`
! UPDATE people SET status = DEFAULT(email)
! UPDATE people SET status = /*! email */ 'x'
! DELETE people FROM people JOIN places ON people.email = places.city
! INSERT INTO places (id, city) SELECT id, `email` FROM people
! UPDATE watched SET status = 'x'
""",
    "sqlite": """
= UPDATE people SET status = 'x' WHERE id = 1 RETURNING id, status
= INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET status = excluded.status
= INSERT OR IGNORE INTO people (id, status) VALUES (1, 'x')
= UPDATE places SET city = p.status FROM people p WHERE p.id = places.id
= INSERT INTO people ("id", status) VALUES (19, 'x')
! UPDATE people SET 'email' = 'x'
! INSERT INTO people (id, 'email') VALUES (9, 'x')
! INSERT INTO people ('id', 'status', 'email') VALUES (9, 'x', 'y')
! UPDATE places SET city = (SELECT count(*) FROM people JOIN accounts USING ('email'))
! UPDATE places SET city = (SELECT count(*) FROM people JOIN accounts USING (id, 'email'))
! UPDATE places SET city = (SELECT p.'email' FROM people p)
! UPDATE people SET status = [email]
! UPDATE people SET status = `email`
! UPDATE people SET status = 'x' RETURNING *
! UPDATE people SET status = 'x' RETURNING people.*
! UPDATE people SET status = 'x' RETURNING (SELECT email FROM people)
! INSERT OR REPLACE INTO people (id, status) VALUES (1, 'x')
! REPLACE INTO people (id, status) VALUES (1, 'x')
! INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET status = people.email
! INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET tenant = 8
! UPDATE places SET city = x.email FROM people x
! DELETE FROM places WHERE city IN people
! UPDATE watched SET status = 'x'
! DELETE FROM watched
""",
    "duckdb": """
= UPDATE people SET status = DEFAULT WHERE id = 1
= UPDATE people SET status = 'x' WHERE id = 1 RETURNING id, status
= INSERT INTO people (id, status) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET status = excluded.status
= UPDATE places SET city = p.status FROM people p WHERE p.id = places.id
= INSERT INTO places BY NAME SELECT id + 50 AS id FROM people
= MERGE INTO places USING people ON places.id = people.id WHEN MATCHED THEN UPDATE SET city = people.status
= MERGE INTO places USING people ON places.id = people.id + 60 WHEN NOT MATCHED THEN INSERT (id, city) VALUES (people.id + 60, people.status)
! MERGE INTO places USING holders ON places.id = holders.id WHEN MATCHED THEN UPDATE
! MERGE INTO places USING holders ON places.id = holders.id + 70 WHEN NOT MATCHED THEN INSERT
! MERGE INTO places USING holders ON places.id = holders.id + 70 WHEN NOT MATCHED THEN INSERT BY NAME
! INSERT INTO places (id, city) SELECT x.i + 80, x.e FROM (PIVOT people ON status USING count(*)) AS x(i, t, e)
! INSERT INTO places (id, city) SELECT x.i + 80, x.e FROM people PIVOT (count(*) FOR status IN ('new')) AS x(i, t, e)
! INSERT INTO places (id, city) SELECT x.i + 80, x.e FROM (PIVOT_WIDER people ON status USING count(*)) AS x(i, t, e)
! UPDATE places SET city = (SELECT #3 FROM people LIMIT 1)
! UPDATE places SET city = (SELECT COLUMNS('em.*') FROM people LIMIT 1)
! UPDATE places SET city = people::VARCHAR FROM people
! UPDATE places SET city = to_json(p)::VARCHAR FROM people p
! UPDATE places SET city = x.c FROM people AS x(a, b, c, d, e)
! UPDATE places SET city = x.c FROM (FROM people) AS x(a, b, c, d, e)
! INSERT INTO places (id, city) (FROM people SELECT id, email)
! INSERT INTO people BY NAME SELECT 9 AS id, 'x' AS email
! INSERT INTO people BY NAME SELECT 9 AS id, 'x' AS status
! INSERT OR REPLACE INTO people (id, status) VALUES (1, 'x')
! UPDATE people SET status = 'x' RETURNING *
! UPDATE people SET status = 'x' RETURNING * EXCLUDE (id)
! UPDATE people SET status = 'x' RETURNING people
""",
}


def cases(engine: str, mark: str) -> list[str]:
    """The statements of an engine with that mark."""
    lines = (COMMON + BY_ENGINE[engine]).splitlines()
    texts = [line[2:] for line in lines if line.startswith(mark)]
    return [text.replace('"email"', "`email`") if engine == "mysql" else text for text in texts]


def script(engine: str) -> list[str]:
    return [*TABLES, *TRIGGERS[engine]]
