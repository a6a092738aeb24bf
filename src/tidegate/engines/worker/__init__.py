"""Drivers that live in a process of their own, because only a process can always be ended.

`frames` is what travels, `framed_process` what any such process has. `worker_main` is the loop
inside a process in Python, `process` the gate's end of it: a connection of `common/pool.py`. Knows
no database.
"""
