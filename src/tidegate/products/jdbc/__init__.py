"""Databases with a JDBC driver: their engine, dialects, the tools of document 000, and drivers."""
