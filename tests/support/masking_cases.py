# ruff: noqa: E501
"""Statements that try to get at what is hidden, or that read what is true and not hidden.

`=`: gives exactly what it gives on the database in which everything is hidden already. `!`: is
refused. `?`: may fail in the database or tell of plans and names, and shows nothing hidden.
"""

from __future__ import annotations

COMMON = r"""
= SELECT * FROM (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers) a, customers b
= WITH a AS (SELECT 1 AS x), customers AS (SELECT 'x' AS email) SELECT * FROM customers, (SELECT 2 AS z) q
= WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT n.i, c.email FROM n JOIN customers c ON c.id = n.i
= SELECT count(*) FROM orders WHERE CAST(memo AS DECIMAL(10)) > 0
= SELECT max(memo) FROM orders
= SELECT memo FROM orders WHERE memo LIKE 'secret%'
= SELECT count(*) FROM orders WHERE memo = 'secretmemo' OR 1 / (tenant_id - 8) > 5
= SELECT products.title FROM products JOIN orders ON products.id = orders.id AND CAST(orders.memo AS DECIMAL(10)) > 0
= SELECT count(*) FROM orders WHERE (SELECT count(*) FROM customers WHERE id = orders.customer_id AND email LIKE 'secret%') > 0
= SELECT id IN (SELECT id FROM orders WHERE tenant_id = 8) FROM products
= SELECT title, CASE WHEN EXISTS (SELECT 1 FROM orders WHERE total > price) THEN (SELECT max(email) FROM customers) END FROM products
= SELECT x.* FROM (SELECT (SELECT max(email) FROM customers), title FROM products) x
= SELECT (SELECT max(email) FROM customers) IS NULL, title t FROM products
= SELECT COALESCE((SELECT max(phone) FROM customers), 'none')
= SELECT 1 AS customers FROM products AS customers
= SELECT customers FROM (SELECT 1 AS customers) orders
= SELECT * FROM customers
= SELECT x.* FROM (SELECT * FROM customers) x
= SELECT * FROM customers, orders
= SELECT * FROM (SELECT 1 AS x, 2 AS customers) q ORDER BY x, customers
= SELECT * FROM ((customers JOIN orders ON customers.id = orders.customer_id))
= SELECT a.email FROM customers a NATURAL JOIN customers b
= SELECT email FROM products JOIN customers USING (id)
= SELECT (SELECT email FROM customers LIMIT 1)
= SELECT 1 FROM products WHERE EXISTS (SELECT 1 FROM customers WHERE email = 'secret1@mail.example')
= SELECT title FROM products ORDER BY (SELECT email FROM customers LIMIT 1)
= SELECT title FROM products GROUP BY title HAVING max(id) IN (SELECT id FROM customers WHERE email LIKE 'secret%')
= WITH customers AS (SELECT * FROM products) SELECT * FROM customers
= WITH x AS (WITH customers AS (SELECT 1 AS a) SELECT * FROM customers) SELECT * FROM customers
= WITH y AS (SELECT * FROM customers), customers AS (SELECT 1 AS email) SELECT * FROM y
= SELECT * FROM products WHERE id IN (WITH customers AS (SELECT 1 AS id) SELECT id FROM customers) AND EXISTS (SELECT * FROM customers)
= SELECT * FROM products UNION ALL SELECT id, email, 1 FROM customers
= SELECT id, email, 1 FROM customers EXCEPT SELECT * FROM products
= SELECT CAST(notes AS INTEGER) FROM orders
= SELECT count(*) FROM orders WHERE notes LIKE 'secret%'
= SELECT 1 / (tenant_id - 8) FROM orders
= SELECT * FROM orders WHERE tenant_id <> 7
= SELECT max(tenant_id) FROM orders
= SELECT * FROM orders o1 JOIN orders o2 ON o1.id = o2.id WHERE o2.tenant_id = 8
= SELECT contact FROM vip
= SELECT * FROM vip_orders
= SELECT (SELECT count(*) FROM vip WHERE contact LIKE 'secret%')
= SELECT email FROM customers /* x */ -- y
= SELECT email FROM/**/customers
= SELECT "email" FROM "customers"
= SELECT * FROM customers c WHERE c.email >= 'secret' AND c.email < 'secretz'
= SELECT substr(email, 1, 5) FROM customers
= SELECT min(email), max(phone) FROM customers
= SELECT CASE WHEN email = 'secret1@mail.example' THEN 1 END FROM customers
= SELECT DISTINCT email FROM customers ORDER BY email
= SELECT lag(email) OVER (ORDER BY id) FROM customers
! SELECT * FROM nowhere
! INSERT INTO products SELECT id, email, 1 FROM customers
! UPDATE products SET title = (SELECT email FROM customers LIMIT 1)
! UPDATE customers SET email = 'x'
! UPDATE customers SET spent = 0 WHERE email IS NULL
! DELETE FROM products WHERE id IN (SELECT id FROM orders)
! DELETE FROM orders
! CREATE TABLE copy AS SELECT * FROM customers
! CREATE VIEW copy AS SELECT * FROM customers
! DROP TABLE customers
! ALTER TABLE customers RENAME TO c2
! SELECT tidegate_hash('a', email) FROM customers
"""

POSTGRES = r"""
= (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers) UNION SELECT email FROM customers
= SELECT email FROM customers UNION (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers)
= WITH a AS (SELECT email FROM customers), customers AS (SELECT email FROM a) SELECT * FROM customers
= WITH customers AS (SELECT email FROM customers WHERE id < 5) SELECT c.email FROM customers c
! WITH RECURSIVE customers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM customers WHERE i < 5) SELECT * FROM customers
= SELECT email FROM Customers
= SELECT email FROM CUSTOMERS AS x
? SELECT * FROM (customers)
! WITH RECURSIVE customers AS (SELECT * FROM customers) SELECT * FROM customers
= VALUES ((SELECT email FROM customers LIMIT 1))
= SELECT count(*) FROM orders WHERE CAST(memo AS int) > 0
= TABLE customers
= (TABLE customers)
= SELECT * FROM products WHERE false UNION ALL TABLE products
? SELECT 1, 'a', 2 UNION TABLE customers
! SELECT * FROM ONLY customers
! SELECT * FROM ONLY (customers)
! SELECT * FROM customers *
= SELECT * FROM public.customers
= SELECT public.customers.email FROM public.customers
= SELECT public.customers.* FROM customers
= SELECT "public"."customers"."email" FROM "public"."customers"
! SELECT * FROM customers TABLESAMPLE SYSTEM (100)
! SELECT * FROM customers c TABLESAMPLE BERNOULLI (100)
= SELECT customers FROM customers
= SELECT c FROM customers c
= SELECT (c).email FROM customers c
= SELECT c::text FROM customers c
= SELECT row_to_json(c) FROM customers c
= SELECT to_jsonb(customers.*) FROM customers
= SELECT array_agg(c) FROM customers c
? SELECT ctid FROM customers
? SELECT xmin, email FROM customers
? SELECT tableoid FROM orders
= SELECT count(*) FROM orders WHERE CAST(notes AS int) > 0
? SELECT * FROM orders WHERE CASE WHEN tenant_id = 8 THEN 1/0 ELSE 1 END = 1
! SELECT query_to_xml('select * from customers', true, false, '')
! SELECT table_to_xml('customers', true, false, '')
! SELECT * FROM dblink('dbname=x', 'select 1') AS t(a text)
! SELECT * FROM pg_stats
! SELECT most_common_vals FROM pg_catalog.pg_stats WHERE tablename = 'customers'
! SELECT * FROM pg_statistic
! SELECT * FROM pg_stats_ext
! SELECT * FROM pg_stat_activity
! SELECT query FROM pg_stat_statements
! SELECT current_query()
! SELECT pg_stat_get_activity(1)
= SELECT relname FROM pg_class WHERE relname = 'customers'
= SELECT column_name FROM information_schema.columns WHERE table_name = 'customers'
! EXPLAIN SELECT * FROM customers WHERE email = 'x'
! EXPLAIN (ANALYZE, VERBOSE) SELECT email FROM customers
! EXPLAIN SELECT * FROM orders WHERE notes = 'secretnote'
! EXPLAIN DELETE FROM orders
= SELECT * FROM LATERAL (SELECT email FROM customers) x
= SELECT * FROM products p, LATERAL (SELECT email FROM customers WHERE id = p.id) x
! SELECT * FROM ROWS FROM (generate_series(1,2))
= SELECT * FROM generate_series(1, 2) g, customers
! SELECT email FROM customers FOR UPDATE
! SELECT email INTO copy FROM customers
! COPY customers TO STDOUT
! COPY (SELECT * FROM customers) TO STDOUT
! SELECT U&"email" FROM customers
! SELECT * FROM "Customers"
! SELECT * FROM shop.public.customers
! SELECT * FROM pg_catalog.customers
! SELECT * FROM customers_all
= SELECT * FROM part_a
= SELECT * FROM parted
! SELECT * FROM copies
! SELECT * FROM temp_c
! SELECT leak(1)
! SET search_path = other
= SHOW search_path
! PREPARE x AS SELECT * FROM customers
! EXECUTE x
! DECLARE c CURSOR FOR SELECT * FROM customers
! DO $$ BEGIN PERFORM 1; END $$
! MERGE INTO products p USING customers c ON p.id = c.id WHEN MATCHED THEN UPDATE SET title = c.email
! INSERT INTO products VALUES (99, 'x', 1) RETURNING (SELECT email FROM customers LIMIT 1)
! WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d
! LOCK TABLE customers
? SELECT a IN (TABLE customers) FROM (SELECT 1 AS a) q
? SELECT XMLFOREST(email) FROM customers
= SELECT * FROM (VALUES (1)) v(a) JOIN customers ON true
= SELECT string_agg(email, ',' ORDER BY id) FROM customers
= SELECT * FROM customers c(a, b, d, e, f)
= SELECT b FROM customers AS c(a, d, b)
= SELECT (SELECT c FROM customers c LIMIT 1)
= SELECT pg_get_viewdef('vip'::regclass)
! SELECT histogram_bounds::text FROM pg_stats
= SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'orders'
! SELECT pg_get_partition_constraintdef('part_a'::regclass)
"""

MYSQL = r"""
? (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers) UNION SELECT email FROM customers
? SELECT email FROM customers UNION (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers)
= WITH a AS (SELECT email FROM customers), customers AS (SELECT email FROM a) SELECT * FROM customers
= WITH customers AS (SELECT email FROM customers WHERE id < 5) SELECT c.email FROM customers c
! WITH RECURSIVE customers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM customers WHERE i < 5) SELECT * FROM customers
? SELECT email FROM Customers
? SELECT email FROM CUSTOMERS AS x
= SELECT * FROM (customers)
! WITH RECURSIVE customers AS (SELECT * FROM customers) SELECT * FROM customers
! VALUES ((SELECT email FROM customers LIMIT 1))
! SELECT * FROM {{ OJ products LEFT JOIN customers ON products.id = customers.id }}
? SELECT * FROM products WHERE id IN (TABLE customers)
? SELECT 1 UNION TABLE customers
? SELECT updatexml('<a/>', concat('/~', memo), '') FROM orders WHERE tenant_id = 8
= SELECT id FROM orders WHERE IF(memo LIKE 'secret%', (SELECT 1 UNION SELECT 2), 1) = 1
= SELECT `email` FROM `customers`
! SELECT * FROM customers PARTITION (p0)
! SELECT * FROM customers USE INDEX (PRIMARY)
! SELECT * FROM customers FORCE INDEX (PRIMARY)
! SELECT * FROM customers c IGNORE INDEX (PRIMARY)
? SELECT * FROM {db}.customers
? SELECT {db}.customers.email FROM {db}.customers
? SELECT {db}.customers.* FROM customers
! SELECT * FROM customers STRAIGHT_JOIN orders
= SELECT STRAIGHT_JOIN email FROM customers
! HANDLER customers OPEN
! HANDLER customers READ FIRST
? TABLE customers
! SELECT email INTO OUTFILE '/tmp/x' FROM customers
! SELECT email INTO @a FROM customers
? SELECT extractvalue(1, concat('~', notes)) FROM orders
? SELECT id FROM orders WHERE extractvalue(1, concat('~', notes)) = 1
= SELECT id FROM orders WHERE IF(tenant_id = 8, (SELECT 1 UNION SELECT 2), 1) = 1
! SELECT * FROM customers LOCK IN SHARE MODE
! SELECT * FROM customers PROCEDURE ANALYSE()
! SELECT * FROM information_schema.PROCESSLIST
= SELECT table_name FROM information_schema.tables
! SELECT * FROM mysql.column_stats
! SELECT * FROM performance_schema.events_statements_history
! SHOW PROCESSLIST
= SHOW TABLES
= SHOW CREATE TABLE customers
! SHOW CREATE TABLE orders
! SHOW WARNINGS
= DESCRIBE customers
= EXPLAIN customers
! EXPLAIN SELECT * FROM customers
! EXPLAIN EXTENDED SELECT email FROM customers
! EXPLAIN SELECT * FROM orders WHERE notes = 'secretnote'
! ANALYZE SELECT * FROM customers
! ANALYZE FORMAT=JSON SELECT * FROM orders
! ANALYZE TABLE customers
! CALL p()
! DO (SELECT 1 FROM customers)
! REPLACE INTO products SELECT id, email, 1 FROM customers
! LOAD DATA INFILE 'x' INTO TABLE customers
= SELECT 1 FROM DUAL
! SELECT * FROM customers FOR SYSTEM_TIME ALL
= SELECT * FROM (SELECT * FROM customers) AS t
! SELECT leaky()
! SELECT /*! email */ FROM customers
? SELECT * FROM customers c, LATERAL (SELECT c.email) x
= SELECT group_concat(email) FROM customers
= SELECT json_arrayagg(email) FROM customers
! SELECT * FROM mysql.user
= SELECT * FROM customers AS `customers`
"""

SQLITE = r"""
! (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers) UNION SELECT email FROM customers
? SELECT email FROM customers UNION (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers)
? WITH a AS (SELECT email FROM customers), customers AS (SELECT email FROM a) SELECT * FROM customers
? WITH customers AS (SELECT email FROM customers WHERE id < 5) SELECT c.email FROM customers c
= WITH RECURSIVE customers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM customers WHERE i < 5) SELECT * FROM customers
= SELECT email FROM Customers
= SELECT email FROM CUSTOMERS AS x
= SELECT * FROM (customers)
? WITH RECURSIVE customers AS (SELECT * FROM customers) SELECT * FROM customers
= VALUES ((SELECT email FROM customers LIMIT 1))
= SELECT id FROM orders WHERE CASE WHEN memo LIKE 'secret%' THEN abs(-9223372036854775807 - 1) ELSE 1 END
= SELECT id FROM orders WHERE json_extract('{"a":' || memo || '}', '$.a') > 0
= SELECT * FROM main.customers
= SELECT main.customers.email FROM main.customers
= SELECT main.customers.email FROM customers
= SELECT * FROM [customers]
= SELECT * FROM `customers`
? SELECT rowid, * FROM customers
? SELECT _rowid_ FROM orders
! SELECT * FROM customers INDEXED BY i
! SELECT * FROM customers NOT INDEXED
! SELECT * FROM customers AS c NOT INDEXED
! SELECT 1 IN customers
= SELECT 'secret1@mail.example' IN (SELECT email FROM customers)
! SELECT 1 WHERE 'x' NOT IN vip
! SELECT 1 IN main.vip
= SELECT * FROM pragma_table_info('customers')
= SELECT * FROM pragma_table_list
= PRAGMA table_info(customers)
! PRAGMA integrity_check
! PRAGMA foreign_key_check
= SELECT * FROM sqlite_master
! SELECT * FROM sqlite_stat1
! SELECT * FROM sqlite_stat4
! SELECT * FROM dbstat
! SELECT * FROM sqlite_dbpage
! SELECT * FROM temp.customers
= SELECT * FROM json_each((SELECT json_group_array(email) FROM customers))
= SELECT json_extract(notes, '$') FROM orders
= SELECT id FROM orders WHERE json_extract(notes, '$.a') = 1
= SELECT id FROM orders WHERE CASE WHEN tenant_id = 8 THEN abs(-9223372036854775808) ELSE 1 END
? EXPLAIN QUERY PLAN SELECT * FROM customers
! EXPLAIN SELECT * FROM orders
? SELECT * FROM customers WHERE email MATCH 'x'
= SELECT group_concat(email) FROM customers
? SELECT email FROM customers WHERE rowid = 1
! REPLACE INTO products SELECT id, email, 1 FROM customers
! INSERT INTO products VALUES (77, 'x', 1) RETURNING (SELECT email FROM customers)
! ATTACH 'x' AS y
! SELECT * FROM 'customers'
? SELECT * FROM generate_series(1, 3), customers
! SELECT * FROM docs_content
= SELECT * FROM docs
! SELECT tidegate_hash('k', 'x')
= WITH c(email) AS MATERIALIZED (SELECT email FROM customers) SELECT * FROM c
= SELECT * FROM customers GROUP BY email
= SELECT * FROM (SELECT * FROM customers) NATURAL JOIN orders
"""

DUCKDB = r"""
= (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers) UNION SELECT email FROM customers
= SELECT email FROM customers UNION (WITH customers AS (SELECT 'x' AS email) SELECT email FROM customers)
= WITH a AS (SELECT email FROM customers), customers AS (SELECT email FROM a) SELECT * FROM customers
= WITH customers AS (SELECT email FROM customers WHERE id < 5) SELECT c.email FROM customers c
! WITH RECURSIVE customers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM customers WHERE i < 5) SELECT * FROM customers
= SELECT email FROM Customers
= SELECT email FROM CUSTOMERS AS x
= SELECT * FROM (customers)
! WITH RECURSIVE customers AS (SELECT * FROM customers) SELECT * FROM customers
= VALUES ((SELECT email FROM customers LIMIT 1))
= SELECT count(*) FROM orders WHERE CAST(memo AS INTEGER) > 0
= SELECT id FROM orders WHERE memo::INTEGER > 5 AND tenant_id = 7
= SELECT count(*) FROM orders JOIN products ON memo::INTEGER = products.id
! SELECT stats(memo) FROM orders
= FROM customers
= FROM customers SELECT email
= FROM (FROM customers)
= SELECT * FROM (FROM customers SELECT email)
= TABLE customers
= SUMMARIZE customers
= SUMMARIZE SELECT * FROM orders
= SUMMARIZE main.customers
= DESCRIBE customers
! SHOW customers
= SHOW TABLES
= PIVOT orders ON tenant_id USING count(*)
? PIVOT customers ON email USING count(*)
= UNPIVOT customers ON email, phone
= SELECT * FROM orders PIVOT (count(*) FOR tenant_id IN (7, 8, 9))
? SELECT * FROM customers TABLESAMPLE 50%
? SELECT * FROM customers USING SAMPLE 5
= SELECT COLUMNS(*) FROM customers
= SELECT COLUMNS('em.*') FROM customers
= SELECT * EXCLUDE (name) FROM customers
= SELECT * REPLACE (email AS name) FROM customers
= SELECT customers FROM customers
= SELECT customers.email FROM main.customers
= SELECT main.customers.email FROM main.customers
? SELECT real.main.customers.email FROM real.main.customers
? SELECT * FROM real.customers
? SELECT real.customers.email FROM real.customers
? SELECT struct_pack(c) FROM customers c
= SELECT to_json(c) FROM customers c
? SELECT rowid FROM customers
= SELECT * FROM customers POSITIONAL JOIN products
= SELECT * FROM products ASOF JOIN customers ON products.id >= customers.id
= SELECT * FROM products SEMI JOIN customers ON products.id = customers.id
! SELECT * FROM query('SELECT * FROM customers')
! SELECT * FROM query_table('customers')
! SELECT * FROM query_table(['customers'])
! SELECT * FROM seq_scan('customers')
! SELECT * FROM storage_info('customers')
! SELECT * FROM pragma_storage_info('customers')
! PRAGMA storage_info('customers')
= PRAGMA table_info('customers')
! SELECT current_query(), email FROM customers
! SELECT stats(email) FROM customers
! SELECT alias((SELECT max(email) FROM customers))
! SELECT getvariable('x')
= SELECT CAST(notes AS INTEGER) FROM orders
= SELECT count(*) FROM orders WHERE CAST(notes AS INTEGER) > 0
= SELECT count(*) FROM orders JOIN products ON CAST(orders.notes AS INTEGER) = products.id
! SELECT count(*) FROM orders WHERE CASE WHEN tenant_id = 8 THEN error('x') ELSE true END
= SELECT count(*) FROM orders WHERE CASE WHEN tenant_id = 8 THEN CAST('x' AS INTEGER) ELSE 1 END = 1
! EXPLAIN SELECT * FROM customers
! EXPLAIN ANALYZE SELECT email FROM customers
! EXPLAIN SELECT * FROM orders
? SELECT * FROM duckdb_tables()
? SELECT * FROM duckdb_columns()
? SELECT * FROM information_schema.columns
? SELECT * FROM duckdb_settings()
! SELECT * FROM 'x.csv'
! SELECT * FROM read_csv('x.csv')
! COPY customers TO 'x.csv'
! EXPORT DATABASE 'x'
! SELECT * FROM m()
! SELECT leak(1)
= SELECT list(email) FROM customers
= SELECT [x.email FOR x IN (SELECT list(c) FROM customers c)]
! SELECT * FROM customers AT (VERSION => 1)
= WITH RECURSIVE c AS (SELECT email FROM customers) SELECT * FROM c
= WITH customers AS MATERIALIZED (SELECT * FROM customers) SELECT * FROM customers
= SELECT * FROM c: customers
= SELECT c.email FROM c: customers
= SELECT histogram(email) FROM customers
= SELECT max(email) FROM customers
= SELECT arg_max(email, id) FROM customers
! INSERT INTO products SELECT id, email, 1 FROM customers
! MERGE INTO products USING customers ON products.id = customers.id WHEN MATCHED THEN UPDATE SET title = email
= SELECT (FROM customers SELECT max(email))
= SELECT email FROM customers QUALIFY row_number() OVER (ORDER BY email) = 1
= SELECT unnest(list(c)) FROM customers c
= VALUES ((FROM customers SELECT max(email)))
= SELECT * FROM customers c, (SELECT c.email)
"""

BY_ENGINE = {"postgres": POSTGRES, "mysql": MYSQL, "sqlite": SQLITE, "duckdb": DUCKDB}

EXTRA: dict[str, tuple[str, ...]] = {
    "postgres": (
        "CREATE TABLE customers_all (LIKE customers)",
        "ALTER TABLE customers INHERIT customers_all",
        "CREATE TABLE parted (id int, a text) PARTITION BY LIST (id)",
        "CREATE TABLE part_a PARTITION OF parted FOR VALUES IN (1)",
        "CREATE MATERIALIZED VIEW copies AS SELECT email FROM customers",
        "CREATE FUNCTION leak(int) RETURNS text STABLE LANGUAGE sql AS 'SELECT max(email)::text FROM customers'",
    ),
    "mysql": (),
    "sqlite": ("CREATE VIRTUAL TABLE docs USING fts5(body)",),
    "duckdb": (
        "CREATE MACRO leak(x) AS (SELECT max(email) FROM customers)",
        "CREATE MACRO m() AS TABLE SELECT * FROM customers",
    ),
}
