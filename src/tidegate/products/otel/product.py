"""What OpenTelemetry adds to the kernel."""

from tidegate.product import Product

PRODUCT = Product(
    "otel",
    extras={"otel": "opentelemetry.sdk"},
    settings={"otel": "tidegate.products.otel.settings:OtelSettings"},
    service="tidegate.products.otel.service:make_service",
)
