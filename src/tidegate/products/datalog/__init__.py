"""Datalevin databases: their engine, Datalog, the tools of document 003, and `tidegate datalog`."""
