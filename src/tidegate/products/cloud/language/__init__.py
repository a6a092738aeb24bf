"""SQL over the methods of providers."""
