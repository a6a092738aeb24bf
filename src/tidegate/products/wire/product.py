"""What the PostgreSQL wire protocol adds to the kernel."""

from tidegate.product import Product

PRODUCT = Product(
    "wire",
    settings={"pg": "tidegate.products.wire.settings:PgWireSettings"},
    command_hooks="tidegate.products.wire.commands.hooks:HOOKS",
    listener="tidegate.products.wire.listener:make_listener",
)
