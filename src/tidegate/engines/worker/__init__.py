"""Drivers that live in a process of their own, because only a process can always be ended.

`frames` is what travels, `worker_main` the loop inside the process, `process` the gate's end of it:
a connection of `common/pool.py`. Knows no database.
"""
