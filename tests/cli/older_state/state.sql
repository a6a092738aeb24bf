
PRAGMA page_size=4096;

PRAGMA writable_schema=ON;

BEGIN TRANSACTION;

DROP TABLE IF EXISTS approvals;
CREATE TABLE approvals (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'allowed', 'denied', 'used', 'expired')),
    actor TEXT NOT NULL,
    subject TEXT NOT NULL,
    asked_at REAL NOT NULL,
    askers INTEGER NOT NULL,
    decided_at REAL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    ended_at REAL,
    rehearsal TEXT
) STRICT;
INSERT INTO approvals VALUES(1,'0fa74eee7e','e58e68a2c15cea1987278f3ad4d8a4fcc234b11976638cbde72004845544e052','allowed','stdio','{"actor_name":"stdio","client":"unknown/0","surface":"core","tool":"query","source":"asks","source_id":"d127808e-b7ec-5b97-abbb-a2366d4cdc62","statement":"UPDATE orders SET total = 10 WHERE id = 1","effect":"write","rule":"source.safe_mode","reason":"Holds an UPDATE","params":null,"withheld":false,"tables":["orders"],"unqualified":false,"database":null,"schema":null,"guarded":false}',1795399666.3597028,1,1795399670.2078326,'cli:root','',NULL,'{"affected":1,"columns":["id","customer","total"],"before":[["1","1","9.5"]],"after":[["1","1","10.0"]],"reason":""}');
INSERT INTO approvals VALUES(2,'b7f82b389b','837efc17f580ec02381d21a623662e7bfc41e5666cf70670f7311e0f210909bc','used','stdio','{"actor_name":"stdio","client":"unknown/0","surface":"core","tool":"query","source":"asks","source_id":"d127808e-b7ec-5b97-abbb-a2366d4cdc62","statement":"UPDATE orders SET total = 11 WHERE id = 1","effect":"write","rule":"source.safe_mode","reason":"Holds an UPDATE","params":null,"withheld":false,"tables":["orders"],"unqualified":false,"database":null,"schema":null,"guarded":false}',1795399670.4268038,1,1795399672.8867395,'cli:root','',1795399677.0195742,'{"affected":1,"columns":["id","customer","total"],"before":[["1","1","9.5"]],"after":[["1","1","11.0"]],"reason":""}');
INSERT INTO approvals VALUES(3,'c6501a3f9f','894c701f1a0faa3f63c6516f75479db8cfe93673084037d753ac153886c7e37d','denied','stdio','{"actor_name":"stdio","client":"unknown/0","surface":"core","tool":"query","source":"asks","source_id":"d127808e-b7ec-5b97-abbb-a2366d4cdc62","statement":"DELETE FROM orders WHERE id = 2","effect":"write","rule":"source.safe_mode","reason":"Holds a DELETE","params":null,"withheld":false,"tables":["orders"],"unqualified":false,"database":null,"schema":null,"guarded":false}',1795399673.1399949,1,1795399675.7266905,'cli:root','not these',NULL,'{"affected":1,"columns":["id","customer","total"],"before":[["2","1","20.0"]],"after":[null],"reason":""}');
INSERT INTO approvals VALUES(4,'b978b88b0b','e26a89a9d4363cf86ce3927edf8444b1a3c385b071efc64df17c5bad2f791960','pending','stdio','{"actor_name":"stdio","client":"unknown/0","surface":"core","tool":"query","source":"asks","source_id":"d127808e-b7ec-5b97-abbb-a2366d4cdc62","statement":"DELETE FROM orders WHERE id = 3","effect":"write","rule":"source.safe_mode","reason":"Holds a DELETE","params":null,"withheld":false,"tables":["orders"],"unqualified":false,"database":null,"schema":null,"guarded":false}',1795399676.0838473,1,NULL,'','',NULL,'{"affected":1,"columns":["id","customer","total"],"before":[["3","2","7.25"]],"after":[null],"reason":""}');
CREATE INDEX approvals_digest ON approvals (digest, state);
CREATE UNIQUE INDEX approvals_pending ON approvals (digest) WHERE state = 'pending';
CREATE INDEX approvals_state ON approvals (state, asked_at);

DROP TABLE IF EXISTS generations;
CREATE TABLE generations (
    area TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO generations VALUES('sources',3);
INSERT INTO generations VALUES('tokens',4);

DROP TABLE IF EXISTS history;
CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    source TEXT NOT NULL,
    actor TEXT NOT NULL,
    surface TEXT NOT NULL,
    tool TEXT NOT NULL,
    "database" TEXT NOT NULL,
    dialect TEXT NOT NULL,
    text TEXT NOT NULL,
    elapsed_ms REAL NOT NULL,
    row_count INTEGER NOT NULL,
    success INTEGER NOT NULL,
    error TEXT NOT NULL
) STRICT;
INSERT INTO history VALUES(1,1795399661.4806647,'shop','cli','cli','query','shop','sqlite','SELECT name, email FROM customers ORDER BY id',12.195929999961663,2,1,'');
INSERT INTO history VALUES(2,1795399663.3301928,'shop','cli','cli','query','shop','sqlite','SELECT total FROM orders WHERE id > 1',0.6304200001068239,1,1,'');
INSERT INTO history VALUES(3,1795399665.8407402,'asks','stdio','core','query','shop','sqlite','SELECT name, email FROM customers ORDER BY id',0.3844730001674179,2,1,'');
INSERT INTO history VALUES(4,1795399666.3350677,'asks','stdio','core','query','shop','sqlite','SELECT total FROM orders WHERE id > 1',0.07616399989274214,2,1,'');
INSERT INTO history VALUES(5,1795399666.3363385,'asks','stdio','core','query','shop','sqlite','SELECT nope FROM customers',1.1097449998942466,0,0,'no such column: nope');
INSERT INTO history VALUES(6,1795399677.0192978,'asks','stdio','core','query','shop','sqlite','UPDATE orders SET total = 11 WHERE id = 1',12.803505999954723,1,1,'');
INSERT INTO history VALUES(7,1795399678.7902808,'plain','cli','cli','query','shop','sqlite','SELECT count(*) FROM orders',0.6890879999446042,1,1,'');
CREATE INDEX history_at ON history (at, id);
CREATE TRIGGER history_removed AFTER DELETE ON history
WHEN OLD.id <= (SELECT upto FROM history_indexed) BEGIN
    INSERT INTO history_words (history_words, rowid, text) VALUES ('delete', OLD.id, OLD.text);
END;

DROP TABLE IF EXISTS history_indexed;
CREATE TABLE history_indexed (upto INTEGER NOT NULL) STRICT;
INSERT INTO history_indexed VALUES(0);

DELETE FROM sqlite_schema WHERE name='history_words' AND type='table';
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql) VALUES('table','history_words','history_words',0,'CREATE VIRTUAL TABLE history_words USING fts5 (
    text,
    content = ''history'',
    content_rowid = ''id'',
    tokenize = ''unicode61 remove_diacritics 2''
)');

DROP TABLE IF EXISTS history_words_config;
CREATE TABLE 'history_words_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO history_words_config VALUES('version',4);

DROP TABLE IF EXISTS history_words_data;
CREATE TABLE 'history_words_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO history_words_data VALUES(1,X'');
INSERT INTO history_words_data VALUES(10,X'00000000000000');

DROP TABLE IF EXISTS history_words_docsize;
CREATE TABLE 'history_words_docsize'(id INTEGER PRIMARY KEY, sz BLOB);

DROP TABLE IF EXISTS history_words_idx;
CREATE TABLE 'history_words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

DROP TABLE IF EXISTS pairings;
CREATE TABLE pairings (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    client TEXT NOT NULL,
    address TEXT NOT NULL,
    challenge TEXT NOT NULL,
    wanted TEXT NOT NULL,
    asked_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    state TEXT NOT NULL,
    token_name TEXT NOT NULL,
    granted TEXT
) STRICT, WITHOUT ROWID;

DROP TABLE IF EXISTS sources;
CREATE TABLE sources (
    name TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    engine TEXT NOT NULL,
    dialect TEXT NOT NULL,
    external_access TEXT NOT NULL,
    ai_policy TEXT NOT NULL,
    safe_mode TEXT NOT NULL,
    tags TEXT NOT NULL
, rules TEXT NOT NULL DEFAULT '{}') STRICT, WITHOUT ROWID;
INSERT INTO sources VALUES('asks','d127808e-b7ec-5b97-abbb-a2366d4cdc62','sqlite:////tmp/tidegate-older-state/shop.db','sqlite','sqlite','readWrite','alwaysAllow','alert','[]','{}');
INSERT INTO sources VALUES('plain','980283c6-1e8a-5a80-a9c7-4ffd9db1bc76','sqlite:////tmp/tidegate-older-state/shop.db','sqlite','sqlite','readOnly','never','silent','[]','{}');
INSERT INTO sources VALUES('shop','7f3b52f2-d656-5988-9d76-c9fd03c0deb0','sqlite:////tmp/tidegate-older-state/shop.db','sqlite','sqlite','readWrite','alwaysAllow','alert','["prod"]','{"destructive_scope":"fullAccess","masks":[{"column":"customers.email","show":"hash","tokens":[],"except_tokens":[],"tag":null}],"filters":[{"table":"orders","where":"total > 8","tokens":[],"except_tokens":[],"tag":null}]}');
CREATE TRIGGER sources_added AFTER INSERT ON sources BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'sources';
END;
CREATE TRIGGER sources_changed AFTER UPDATE ON sources BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'sources';
END;
CREATE TRIGGER sources_removed AFTER DELETE ON sources BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'sources';
END;

DROP TABLE IF EXISTS tabs;
CREATE TABLE tabs (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    window_id TEXT NOT NULL REFERENCES windows (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    "table" TEXT,
    "database" TEXT,
    "schema" TEXT,
    is_active INTEGER NOT NULL,
    focused_at REAL NOT NULL
) STRICT;
CREATE INDEX tabs_focused ON tabs (focused_at);
CREATE UNIQUE INDEX tabs_one_active ON tabs (window_id) WHERE is_active;

DROP TABLE IF EXISTS tokens;
CREATE TABLE tokens (
    serial INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    sources TEXT,
    created_at REAL NOT NULL,
    expires_at REAL,
    last_used_at REAL,
    revoked_at REAL
, tags TEXT, tables TEXT) STRICT;
INSERT INTO tokens VALUES(1,'tok_00b3ab27eedc5e1c','claude','tg_bQi-N',X'C3A866AA51B784431664E0DA161856E23F36F1771AE66743D2CA4B816DE6B544','readWrite','["shop"]',1795399653.9537802,NULL,NULL,NULL,NULL,'["orders"]');
INSERT INTO tokens VALUES(2,'tok_4bdd87fd8848826d','reader','tg_Wswn4',X'9D563F2B909F5FC5A475054F8B18D457D62B85DBD60906A28A80C2F14C76F690','readOnly',NULL,1795399656.6593127,1803175656.6582496,NULL,NULL,'["prod"]',NULL);
INSERT INTO tokens VALUES(3,'tok_3c82f5cb48827989','gone','tg_UXMgR',X'FCF62B1CA24A341ABE42B9359075253921DA9C77EC5986A79805002DAB67C791','fullAccess',NULL,1795399658.0576801,NULL,NULL,1795399660.0366762,NULL,NULL);
CREATE UNIQUE INDEX tokens_active_name ON tokens (name) WHERE revoked_at IS NULL;
CREATE TRIGGER tokens_added AFTER INSERT ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_changed
AFTER UPDATE OF name, digest, scope, sources, tags, tables, expires_at, revoked_at ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_removed AFTER DELETE ON tokens BEGIN
    UPDATE generations SET value = value + 1 WHERE area = 'tokens';
END;
CREATE TRIGGER tokens_stay_revoked BEFORE UPDATE OF revoked_at ON tokens
WHEN OLD.revoked_at IS NOT NULL BEGIN
    SELECT RAISE(ABORT, 'a revoked token stays revoked');
END;

DROP TABLE IF EXISTS windows;
CREATE TABLE windows (
    id TEXT PRIMARY KEY,
    source_id TEXT NOT NULL,
    opened_at REAL NOT NULL,
    focused_at REAL NOT NULL,
    seen_at REAL
) STRICT, WITHOUT ROWID;

pragma user_version=2;
pragma application_id=1413955924;

COMMIT TRANSACTION;

PRAGMA writable_schema=OFF;

BEGIN;
CREATE TABLE no_such_table(x,y,z);
ROLLBACK;
