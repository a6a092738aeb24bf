"""What the PostgreSQL wire protocol adds to the kernel."""

from tidegate.product import Product

PRODUCT = Product(
    "wire",
    settings={"pg": "tidegate.products.wire.server_settings:PgWireSettings"},
    command_hooks="tidegate.products.wire.hooks:HOOKS",
    listener="tidegate.products.wire.listener:make_listener",
)
