"""Datalevin: Datalog databases, key-value stores, full-text and vector indexes, in directories and
on remote servers. The extra `datalog` has the library and a Java for it."""

from tidegate.products.datalog.engine.engine import DatalevinEngine

__all__ = ["DatalevinEngine"]
