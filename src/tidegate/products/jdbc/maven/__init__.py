"""Fetches Java libraries by their Maven coordinate, and keeps them in a locked cache.

`cache.py` is the entry: it gives the jars of a coordinate, from the cache if it has them.
`resolution.py` finds what a library needs, `repository.py` downloads and checks files, and
`lock_file.py` is the record of what was fetched first. Nothing here runs Java.
"""
