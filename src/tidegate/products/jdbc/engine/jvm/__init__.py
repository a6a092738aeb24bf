"""A Java virtual machine as a child process, for drivers that only Java has.

`java/` is the program inside it, which the package's build compiles into `worker.jar`; `runtime.py`
finds Java, `process.py` is the gate's end of the process. Knows JDBC, and no database.
"""
