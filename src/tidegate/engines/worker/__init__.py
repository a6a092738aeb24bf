"""Drivers that live in a process of their own, because only a process can always be ended.

`frames` is what travels, `serve` the loop inside the process, `process` the gate's end of it,
`pool` keeps a few, `errand` lends one to a statement and ends it in time. Knows no database.
"""
