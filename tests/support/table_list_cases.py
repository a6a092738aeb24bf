# ruff: noqa: E501
"""Statements of a caller that may use `customers` and the view `cheap` alone.

`=`: gives what it gives in a database that has these two and nothing else. `!`: is refused, in the
same words if `orders` is called `nowhere`.
"""

from __future__ import annotations

COMMON = r"""
= SELECT * FROM customers
= SELECT c.name, x.title FROM customers c JOIN cheap x ON x.id = c.id WHERE c.spent > 10 ORDER BY 1
= SELECT count(*) FROM customers, cheap
= WITH orders AS (SELECT id FROM customers) SELECT count(*) FROM orders
= WITH RECURSIVE orders(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM orders WHERE i < 4) SELECT * FROM orders
= SELECT orders.id FROM customers AS orders
= SELECT id AS orders FROM customers ORDER BY orders
= SELECT EXISTS (SELECT 1 FROM customers WHERE id IN (SELECT id FROM cheap))
= SELECT * FROM (SELECT id, name FROM customers UNION SELECT id, title FROM cheap) AS u
= SELECT name, row_number() OVER (PARTITION BY spent ORDER BY id) FROM customers
= SELECT upper(name), coalesce(email, 'none'), CASE WHEN spent > 100 THEN 'much' ELSE 'little' END FROM customers
= SELECT 1
= EXPLAIN SELECT * FROM customers
= SELECT customers.* FROM customers LEFT JOIN cheap USING (id)
! SELECT * FROM orders
! SELECT * FROM Orders
! SELECT * FROM "orders"
! SELECT o.id FROM orders AS o
! SELECT customers.id FROM customers JOIN orders ON orders.customer_id = customers.id
! SELECT * FROM customers, orders
! SELECT * FROM customers CROSS JOIN orders
! SELECT * FROM (customers JOIN orders ON true)
! SELECT id FROM customers WHERE id IN (SELECT customer_id FROM orders)
! SELECT (SELECT max(total) FROM orders) FROM customers
! SELECT id FROM customers WHERE EXISTS (SELECT 1 FROM orders)
! SELECT id FROM customers ORDER BY (SELECT count(*) FROM orders)
! SELECT id FROM customers UNION SELECT id FROM orders
! WITH x AS (SELECT * FROM orders) SELECT * FROM x
! WITH x AS (WITH orders AS (SELECT 1 AS a) SELECT * FROM orders) SELECT * FROM x, orders
! SELECT * FROM (SELECT * FROM (SELECT * FROM orders) AS a) AS b
! SELECT count(*) FROM customers GROUP BY name HAVING count(*) < (SELECT count(*) FROM orders)
! SELECT * FROM orders WHERE 1 = 0
! SELECT * FROM vip
! SELECT * FROM vip_orders
! SELECT * FROM products
! SELECT * FROM {home}.orders
! SELECT * FROM nowhere.orders
! SELECT * FROM information_schema.tables
! SELECT * FROM information_schema.columns WHERE table_name = 'orders'
! EXPLAIN SELECT * FROM orders
! EXPLAIN SELECT * FROM cheap
! INSERT INTO orders (id) VALUES (1000)
! INSERT INTO orders SELECT * FROM orders
! INSERT INTO customers (id, name) SELECT id, memo FROM orders
! INSERT INTO customers (id, name) VALUES (1000, (SELECT max(memo) FROM orders))
! WITH x AS (SELECT 1 AS id) INSERT INTO orders (id) SELECT id FROM x
! WITH orders AS (SELECT 1 AS id) INSERT INTO orders (id) SELECT id FROM orders
! WITH orders AS (SELECT 1 AS id) INSERT INTO orders SELECT * FROM customers
! WITH orders AS (SELECT 1 AS id) UPDATE orders SET total = 0
! WITH orders AS (SELECT 1 AS id) DELETE FROM orders
! WITH x AS (SELECT id FROM orders) INSERT INTO customers (id) SELECT id FROM x
! WITH x AS (SELECT id FROM orders) DELETE FROM customers WHERE id IN (SELECT id FROM x)
! WITH x AS (SELECT 1 AS id) UPDATE customers SET name = (SELECT max(memo) FROM orders)
! UPDATE orders SET total = 0
! UPDATE customers SET name = (SELECT max(memo) FROM orders) WHERE id = 1
! UPDATE customers SET name = 'x' WHERE id IN (SELECT id FROM orders)
! DELETE FROM orders
! DELETE FROM customers WHERE id IN (SELECT customer_id FROM orders)
! DROP TABLE orders
! DROP TABLE customers
! ALTER TABLE customers RENAME TO was
! CREATE TABLE fresh AS SELECT * FROM orders
! CREATE TABLE fresh AS SELECT * FROM customers
! CREATE VIEW fresh AS SELECT * FROM orders
"""

POSTGRES = r"""
= SELECT EXTRACT(epoch FROM orders.x) IS NULL FROM (SELECT now() AS x) AS orders
= SELECT interval '1 day', timestamp '2020-01-01', bool 't', int4 '5', jsonb '{}'
= SELECT count(*) FILTER (WHERE id > 1), array_agg(id ORDER BY name) FROM customers
= SELECT * FROM customers, pg_catalog.generate_series(1, 2)
= SELECT id FROM customers WHERE (id, name) IN (SELECT id, title FROM cheap) OFFSET 1 FETCH FIRST 2 ROWS ONLY
! SELECT EXTRACT(year FROM (SELECT max(id) FROM orders)::text::date)
! SELECT NULL::"orders"
! SELECT NULL::_orders
! SELECT ROW(1, 2)::orders
! SELECT "orders" '(1)'
! SELECT 'orders'::U&"\0072egclass"
! SELECT orders(customers) FROM customers
! WITH orders AS (SELECT * FROM orders) SELECT * FROM orders
= TABLE customers
= SELECT * FROM public.customers
= SELECT extract(year FROM now()) > 2000, substring(name FROM 2 FOR 3), trim(both ' ' FROM name) FROM customers
= SELECT name FROM customers WHERE email IS DISTINCT FROM phone
= SELECT g, name FROM generate_series(1, 3) AS g JOIN customers ON customers.id = g
= SELECT name, x FROM customers, LATERAL (SELECT spent + 1 AS x) AS l
= SELECT id::text, spent::numeric, DATE '2026-01-01' FROM customers
= SELECT json_agg(c) FROM customers c
= SELECT c FROM customers c WHERE c.id = 1
= SHOW server_version_num
! TABLE orders
! (TABLE orders)
! SELECT * FROM ONLY orders
! SELECT * FROM orders TABLESAMPLE SYSTEM (100)
! SELECT NULL::orders
! SELECT (NULL::orders).*
! SELECT CAST(NULL AS orders)
! SELECT CAST(NULL AS public.orders)
! SELECT NULL::orders[]
! SELECT json_populate_record(NULL::orders, '{}')
! SELECT orders '(1,2,3,4,5,6)'
! SELECT * FROM json_to_record('{"a":null}') AS x(a orders)
! SELECT 'orders'::regclass
! SELECT CAST('orders' AS regclass)
! SELECT regclass 'orders'
! SELECT 'orders'::pg_catalog.regclass::oid
! SELECT to_regclass('orders')
! SELECT pg_relation_size('orders')
! SELECT pg_total_relation_size(16384)
! SELECT pg_get_viewdef('cheap')
! SELECT has_table_privilege('orders', 'select')
! SELECT obj_description(1, 'pg_class')
! SELECT * FROM pg_class
! SELECT * FROM pg_catalog.pg_tables
! SELECT * FROM pg_views
! SELECT * FROM pg_stat_user_tables
! SELECT * FROM pg_timezone_names()
! SELECT query_to_xml('select * from orders', true, true, '')
! SELECT currval('orders_id_seq')
! EXPLAIN (VERBOSE) SELECT * FROM customers JOIN orders ON true
! MERGE INTO customers USING orders ON customers.id = orders.id WHEN MATCHED THEN UPDATE SET name = orders.memo
! WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x
! UPDATE customers SET name = orders.memo FROM orders WHERE orders.id = customers.id
! DELETE FROM customers USING orders WHERE orders.id = customers.id
! INSERT INTO customers (id) VALUES (1000) RETURNING (SELECT max(memo) FROM orders)
! COPY orders TO STDOUT
! TRUNCATE customers, orders
! ALTER TABLE orders INHERIT customers
! COMMENT ON TABLE customers IS 'x'
! LOCK TABLE orders
! SELECT * INTO fresh FROM orders
"""

MYSQL = r"""
= (SELECT id FROM customers) UNION (SELECT id FROM cheap)
! SHOW VARIABLES WHERE (SELECT count(*) FROM orders) > 0
! SELECT 1 FROM customers c, LATERAL (SELECT * FROM orders) x
! DESCRIBE customers.orders
! EXPLAIN TABLE orders
! DO (SELECT 1 FROM orders)
! WITH orders AS (SELECT * FROM orders) SELECT * FROM orders
= SELECT 1 FROM dual
= SELECT extract(YEAR FROM now()) > 2000, substring(name FROM 2 FOR 3), trim(BOTH ' ' FROM name) FROM customers
= SELECT group_concat(name ORDER BY id SEPARATOR ';') FROM customers
= DESCRIBE customers
= DESCRIBE customers email
= SHOW VARIABLES LIKE 'lower_case_table_names'
! TABLE orders
! DESCRIBE orders
! DESC orders
! DESCRIBE {home}.orders
! EXPLAIN orders
! SHOW TABLES
! SHOW FULL TABLES
! SHOW TABLE STATUS
! SHOW COLUMNS FROM orders
! SHOW COLUMNS FROM customers
! SHOW CREATE TABLE orders
! SHOW INDEX FROM orders
! SHOW OPEN TABLES
! SELECT * FROM orders PARTITION (p0)
! SELECT STRAIGHT_JOIN * FROM customers, orders
! SELECT * FROM customers STRAIGHT_JOIN orders
! SELECT * FROM `orders`
! UPDATE customers, orders SET customers.name = orders.memo WHERE orders.id = customers.id
! UPDATE customers JOIN orders ON orders.id = customers.id SET customers.name = orders.memo
! DELETE customers FROM customers JOIN orders ON orders.id = customers.id
! REPLACE INTO orders (id) VALUES (1)
! INSERT INTO customers (id) VALUES (1000) ON DUPLICATE KEY UPDATE name = (SELECT max(memo) FROM orders)
! SELECT * FROM mysql.user
! SELECT * FROM performance_schema.table_handles
! CHECKSUM TABLE orders
! ANALYZE TABLE orders
! HANDLER orders OPEN
"""

SQLITE = r"""
= SELECT * FROM main.customers
= SELECT value, name FROM json_each('[1,2]') JOIN customers ON customers.id = value
! SELECT * FROM sqlite_master
! SELECT * FROM sqlite_schema
! SELECT * FROM main.sqlite_master
! SELECT * FROM pragma_table_info('orders')
! SELECT * FROM pragma_table_list
! SELECT * FROM pragma_foreign_key_list('orders')
! PRAGMA table_info('orders')
! PRAGMA table_list
! PRAGMA index_list('customers')
! PRAGMA foreign_key_list('customers')
! SELECT 1 IN orders
! SELECT id FROM customers WHERE id IN orders
! SELECT * FROM [orders]
! SELECT * FROM `orders`
! SELECT * FROM orders NOT INDEXED
! EXPLAIN QUERY PLAN SELECT * FROM orders
! EXPLAIN QUERY PLAN SELECT * FROM cheap
! INSERT OR REPLACE INTO orders (id) VALUES (1)
! REPLACE INTO orders (id) VALUES (1)
! UPDATE customers SET name = orders.memo FROM orders WHERE orders.id = customers.id
! INSERT INTO customers (id) VALUES (1000) RETURNING (SELECT max(memo) FROM orders)
! ATTACH 'x.db' AS x
! ANALYZE orders
! REINDEX orders
"""

DUCKDB = r"""
= SELECT histogram(spent), count(*) FROM customers
= PIVOT customers ON spent USING count(*)
! SELECT * FROM (DESCRIBE orders)
! SELECT * FROM (SHOW TABLES)
! WITH orders AS (SELECT * FROM orders) SELECT * FROM orders
= FROM customers
= FROM customers SELECT name WHERE id < 4
= SELECT * EXCLUDE (email) FROM customers
= SELECT extract(year FROM DATE '2026-01-01'), name FROM customers
= SELECT unnest([1, 2]), name FROM customers
= SELECT r, name FROM range(3) AS t(r) JOIN customers ON customers.id = r
= DESCRIBE customers
= SUMMARIZE customers
! FROM orders
! FROM orders SELECT id
! DESCRIBE orders
! SUMMARIZE orders
! SHOW TABLES
! SHOW ALL TABLES
! SHOW
! DESCRIBE
! DESC
! SUMMARIZE
! DESCRIBE TABLES
! DESCRIBE ALL TABLES
! SELECT * FROM (DESC)
! SELECT * FROM (SUMMARIZE TABLES)
! SHOW orders
! SHOW TABLES FROM main
! SELECT * FROM duckdb_tables()
! SELECT current_setting('allowed_paths')
! SELECT * FROM duckdb_columns
! SELECT * FROM duckdb_views()
! SELECT * FROM pragma_table_info('orders')
! SELECT * FROM pragma_show('orders')
! SELECT * FROM query_table('orders')
! SELECT * FROM query('SELECT * FROM orders')
! SELECT * FROM histogram('orders', 'total')
! SELECT * FROM histogram_values(orders, total)
! SELECT * FROM histogram_values('orders', 'total')
! SELECT stats(id) FROM orders
! SELECT * FROM sqlite_master
! SELECT * FROM pg_tables
! SELECT * FROM pg_catalog.pg_class
! PIVOT orders ON tenant_id USING sum(total)
! UNPIVOT orders ON total INTO NAME n VALUE v
! SELECT * FROM (PIVOT orders ON tenant_id USING sum(total))
! SELECT * FROM customers POSITIONAL JOIN orders
! SELECT * FROM customers ASOF JOIN orders ON customers.id >= orders.id
! SELECT * FROM customers SEMI JOIN orders ON customers.id = orders.id
! SELECT (FROM orders SELECT max(memo))
! SELECT * FROM 'orders'
! PRAGMA table_info('orders')
! PRAGMA show_tables
! UPDATE customers SET name = orders.memo FROM orders WHERE orders.id = customers.id
! COPY orders TO 'x.csv'
! INSERT INTO customers BY NAME SELECT * FROM orders
! SUMMARIZE cheap, orders
"""

BY_ENGINE = {"postgres": POSTGRES, "mysql": MYSQL, "sqlite": SQLITE, "duckdb": DUCKDB}
