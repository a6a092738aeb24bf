"""What shipping the record adds to the kernel."""

from tidegate.product import Product

PRODUCT = Product(
    "shipping",
    settings={"ship": "tidegate.products.shipping.settings:ShipSettings"},
    service="tidegate.products.shipping.service:make_service",
)
