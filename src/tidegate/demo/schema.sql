-- The sample shop. Money is integer cents in the row's currency (columns end in _cents);
-- moments are UTC texts 'YYYY-MM-DD HH:MM:SS', days 'YYYY-MM-DD'; NULL means not known or not yet.

CREATE TABLE countries (
    code TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    native_name TEXT NOT NULL,
    language TEXT NOT NULL,
    currency TEXT NOT NULL,
    tax_percent REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE categories (
    id INTEGER PRIMARY KEY,
    parent_id INTEGER REFERENCES categories (id),
    name TEXT NOT NULL,
    slug TEXT NOT NULL UNIQUE,
    position INTEGER NOT NULL
);
CREATE INDEX categories_by_parent ON categories (parent_id, position);

CREATE TABLE suppliers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    country_code TEXT NOT NULL REFERENCES countries (code),
    email TEXT NOT NULL,
    phone TEXT,
    rating REAL CHECK (rating BETWEEN 0 AND 5),
    since DATE NOT NULL
);

CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    sku TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    description TEXT,
    category_id INTEGER NOT NULL REFERENCES categories (id),
    supplier_id INTEGER NOT NULL REFERENCES suppliers (id),
    price_cents INTEGER NOT NULL CHECK (price_cents > 0),
    cost_cents INTEGER NOT NULL,
    weight_g INTEGER,
    attributes TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(attributes)),
    launched_on DATE NOT NULL,
    discontinued_on DATE
);
CREATE INDEX products_by_category ON products (category_id);
CREATE INDEX products_by_supplier ON products (supplier_id);
CREATE INDEX products_on_sale ON products (price_cents) WHERE discontinued_on IS NULL;

CREATE TABLE product_translations (
    product_id INTEGER NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    language TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (product_id, language)
) WITHOUT ROWID;

CREATE TABLE price_changes (
    id INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products (id) ON DELETE CASCADE,
    changed_at DATETIME NOT NULL,
    old_cents INTEGER NOT NULL,
    new_cents INTEGER NOT NULL
);
CREATE INDEX price_changes_by_product ON price_changes (product_id, changed_at);

CREATE TABLE warehouses (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    country_code TEXT NOT NULL REFERENCES countries (code),
    city TEXT NOT NULL,
    latitude REAL NOT NULL,
    longitude REAL NOT NULL,
    opened_on DATE NOT NULL
);

CREATE TABLE stock (
    warehouse_id INTEGER NOT NULL REFERENCES warehouses (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL CHECK (quantity >= 0),
    reorder_level INTEGER NOT NULL,
    counted_at DATETIME,
    PRIMARY KEY (warehouse_id, product_id)
) WITHOUT ROWID;
CREATE INDEX stock_by_product ON stock (product_id);

CREATE TABLE employees (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    manager_id INTEGER REFERENCES employees (id),
    warehouse_id INTEGER REFERENCES warehouses (id),
    salary_cents INTEGER NOT NULL,
    hired_on DATE NOT NULL,
    left_on DATE
);

CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    phone TEXT,
    language TEXT NOT NULL,
    country_code TEXT NOT NULL REFERENCES countries (code),
    born_on DATE,
    newsletter BOOLEAN NOT NULL DEFAULT 0,
    referred_by INTEGER REFERENCES customers (id),
    created_at DATETIME NOT NULL
);
CREATE INDEX customers_by_country ON customers (country_code);

CREATE TABLE addresses (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('home', 'work', 'gift')),
    line1 TEXT NOT NULL,
    line2 TEXT,
    postal_code TEXT,
    city TEXT NOT NULL,
    country_code TEXT NOT NULL REFERENCES countries (code)
);
CREATE INDEX addresses_by_customer ON addresses (customer_id);

CREATE TABLE promotions (
    id INTEGER PRIMARY KEY,
    code TEXT NOT NULL UNIQUE,
    percent INTEGER NOT NULL CHECK (percent BETWEEN 1 AND 90),
    starts_on DATE NOT NULL,
    ends_on DATE
);

CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    promotion_id INTEGER REFERENCES promotions (id),
    status TEXT NOT NULL
        CHECK (status IN ('placed', 'paid', 'shipped', 'delivered', 'cancelled')),
    currency TEXT NOT NULL,
    items_cents INTEGER NOT NULL,
    discount_cents INTEGER NOT NULL DEFAULT 0,
    shipping_cents INTEGER NOT NULL,
    total_cents INTEGER NOT NULL CHECK (total_cents = items_cents - discount_cents + shipping_cents),
    note TEXT,
    ordered_at DATETIME NOT NULL
);
CREATE INDEX orders_by_customer ON orders (customer_id, ordered_at);
CREATE INDEX orders_by_time ON orders (ordered_at);

CREATE TABLE order_items (
    order_id INTEGER NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
    line INTEGER NOT NULL,
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    unit_price_cents INTEGER NOT NULL,
    PRIMARY KEY (order_id, line)
) WITHOUT ROWID;
CREATE INDEX order_items_by_product ON order_items (product_id);

CREATE TABLE payments (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    method TEXT NOT NULL CHECK (method IN ('card', 'transfer', 'wallet', 'cash')),
    amount_cents INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'paid', 'failed', 'refunded')),
    reference TEXT,
    paid_at DATETIME
);
CREATE INDEX payments_by_order ON payments (order_id);

CREATE TABLE shipments (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (id),
    warehouse_id INTEGER NOT NULL REFERENCES warehouses (id),
    carrier TEXT NOT NULL,
    tracking TEXT,
    shipped_at DATETIME NOT NULL,
    delivered_at DATETIME
);
CREATE INDEX shipments_by_order ON shipments (order_id);

CREATE TABLE returns (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL,
    line INTEGER NOT NULL,
    quantity INTEGER NOT NULL,
    reason TEXT,
    refund_cents INTEGER NOT NULL,
    received_at DATETIME NOT NULL,
    FOREIGN KEY (order_id, line) REFERENCES order_items (order_id, line)
);
CREATE INDEX returns_by_item ON returns (order_id, line);

CREATE TABLE reviews (
    id INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products (id),
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    rating INTEGER NOT NULL CHECK (rating BETWEEN 1 AND 5),
    title TEXT NOT NULL,
    body TEXT,
    language TEXT NOT NULL,
    written_at DATETIME NOT NULL
);
CREATE INDEX reviews_by_product ON reviews (product_id, rating);
CREATE INDEX reviews_by_customer ON reviews (customer_id);

CREATE VIEW category_paths AS
WITH RECURSIVE walk (id, path, depth) AS (
    SELECT id, name, 0 FROM categories WHERE parent_id IS NULL
    UNION ALL
    SELECT c.id, walk.path || ' / ' || c.name, walk.depth + 1
    FROM categories AS c JOIN walk ON c.parent_id = walk.id
)
SELECT id, path, depth FROM walk;

CREATE VIEW sales_by_month AS
SELECT substr(ordered_at, 1, 7) AS month, currency,
       count(*) AS orders, sum(total_cents) AS total_cents
FROM orders WHERE status <> 'cancelled'
GROUP BY month, currency;

CREATE VIEW product_availability AS
SELECT p.id AS product_id, p.sku, p.name,
       coalesce(sum(s.quantity), 0) AS quantity, count(s.warehouse_id) AS warehouses
FROM products AS p LEFT JOIN stock AS s ON s.product_id = p.id
GROUP BY p.id;

CREATE VIEW customer_value AS
SELECT c.id AS customer_id, c.name, c.country_code, count(o.id) AS orders,
       coalesce(sum(o.total_cents), 0) AS total_cents, max(o.ordered_at) AS last_ordered_at
FROM customers AS c
LEFT JOIN orders AS o ON o.customer_id = c.id AND o.status <> 'cancelled'
GROUP BY c.id;

CREATE VIEW open_shipments AS
SELECT s.id AS shipment_id, o.number, s.carrier, s.tracking, s.shipped_at
FROM shipments AS s JOIN orders AS o ON o.id = s.order_id
WHERE s.delivered_at IS NULL;
