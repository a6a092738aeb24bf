"""Connects a client on stdio to a server that runs already."""
