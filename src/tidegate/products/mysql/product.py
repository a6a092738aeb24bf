"""What MariaDB and MySQL add to the kernel."""

from tidegate.product import EngineEntry, Product

_MYSQL = EngineEntry(
    *("mysql", "mysql", "tidegate.engines.mysql", "MysqlEngine", "mysql", 3306),
    identities=True,
    compares_rows=True,
    own_functions=True,
    reader="tidegate.engines.mysql.url:parse_conninfo",
)

PRODUCT = Product(
    "mysql",
    engines={"mysql": _MYSQL, "mariadb": _MYSQL},
    dialects=dict.fromkeys(("mysql", "mariadb"), "tidegate.sql.dialects.mysql"),
)
