"""The language of Datalog sources (pure): EDN, JSON values, what a query reads, an order of values.

Imports no database and no JVM: all of it is tested without one.
"""
