"""What metrics add to the kernel."""

from tidegate.product import Product

PRODUCT = Product(
    "metrics",
    extras={"metrics": "prometheus_client"},
    settings={"metrics": "tidegate.products.metrics.settings:MetricsSettings"},
    listener="tidegate.products.metrics.listener:make_listener",
    parent_listener="tidegate.products.metrics.parent:make_listener",
)
