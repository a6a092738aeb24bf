"""The documented forms of sources' URLs, and some that cannot be read."""

FORMS: list[tuple[str, tuple[str | int, ...]]] = [
    ("postgresql://db.example/shop", ("db.example", 5432, "shop", "")),
    ("postgres://me@db.example:6432/shop", ("db.example", 6432, "shop", "me")),
    ("postgresql://me:${ENV:PW}@db.example:6432/shop?sslmode=require", ("db.example", 6432)),
    ("postgresql://me:${FILE:/run/secrets/a@b:c?d}@db/shop", ("db", 5432, "shop", "me")),
    ("postgresql://me@/shop?host=/var/run/postgresql", ("/var/run/postgresql", 5432, "shop")),
    ("postgresql://me@%2Fvar%2Frun/shop", ("/var/run", 5432, "shop", "me")),
    ("postgresql://me@[::1]:6432/shop", ("::1", 6432, "shop", "me")),
    ("postgresql://h1:6432,h2:5433/shop", ("h1,h2", 6432, "shop", "")),
    ("postgresql:///shop?user=me&port=6000", ("", 6000, "shop", "me")),
    ("postgresql://db/?dbname=shop", ("db", 5432, "shop", "")),
    ("postgresql://m%40e@db/sh%20op?ssh=me@bastion:22", ("db", 5432, "sh op", "m@e")),
    ("mysql://me:${ENV:PW}@db.example/shop?tls=verify&tls_ca=/etc/ca.pem", ("db.example", 3306)),
    ("mariadb://me@db:3307", ("db", 3307, "", "me")),
    ("mariadb://me@/shop?socket=/run/mysqld.sock", ("/run/mysqld.sock", 3306, "shop", "me")),
    ("mysql+pymysql://me@[fe80::1]/shop", ("fe80::1", 3306, "shop", "me")),
    ("sqlite:////data/shop.db?mode=ro", ("", 0, "shop", "")),
    ("sqlite:///a@b:c#d.db", ("", 0, "a@b:c#d", "")),
    ("sqlite:///[::1/x.db", ("", 0, "x", "")),
    ("sqlite://", ("", 0, "", "")),
    ("files:///data/exports?files=5000", ("", 0, "exports", "")),
    ("duckdb:////data/sales.2024.duckdb?threads=1", ("", 0, "sales.2024", "")),
]
"""A URL and what a listing shows: host, port, database, user, as far as they are given here."""

UNREADABLE_URLS = [
    "postgresql://db:99999/shop",
    "postgresql://db:0/shop",
    "postgresql://[::1/shop",
    "postgresql://a@b@c/shop",
    "postgresql://me:${FILE:/x@db/shop",
    "mysql://db:port/shop",
    "mariadb://[::1]x/shop",
    "postgresql://h1:5432,h2:99999/shop",
    "nosuch://db/shop",
    "no url at all",
]
