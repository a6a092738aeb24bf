"""What MariaDB and MySQL add to the kernel."""

from tidegate.product import EngineEntry, Product

_MYSQL = EngineEntry(
    *("mysql", "mysql", "tidegate.products.mysql.engine", "MysqlEngine", "mysql", 3306),
    identities=True,
    compares_rows=True,
    own_functions=True,
    plan_limits=("max_plan_rows",),
    pool=10,
    tells_limit=True,
    reader="tidegate.products.mysql.engine.url:parse_conninfo",
)

PRODUCT = Product(
    "mysql",
    engines={"mysql": _MYSQL, "mariadb": _MYSQL},
    extras={"mysql": "asyncmy"},
    dialects=dict.fromkeys(("mysql", "mariadb"), "tidegate.products.mysql.dialect"),
)
