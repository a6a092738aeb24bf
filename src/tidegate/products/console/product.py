"""What the console adds to the kernel."""

from tidegate.product import Product

PRODUCT = Product("console", pages="tidegate.products.console.serving:make_pages")
