"""The products, each with all that it adds to the kernel in one folder: see `product.py`."""
