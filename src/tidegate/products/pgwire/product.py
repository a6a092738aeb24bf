"""What the PostgreSQL wire protocol adds to the kernel."""

from tidegate.product import Product

PRODUCT = Product(
    "pgwire",
    settings={"pg": "tidegate.products.pgwire.settings:PgWireSettings"},
    command_hooks="tidegate.products.pgwire.commands.hooks:HOOKS",
    listener="tidegate.products.pgwire.listener:make_listener",
)
