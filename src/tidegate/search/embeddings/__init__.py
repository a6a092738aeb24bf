"""Vectors of texts: the providers that compute them, and the request that asks for them."""
