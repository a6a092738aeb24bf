"""What Tidegate asks of the operating system, and what each request promises: locks, files for one
account, their owners and modes, processes and signals, descriptors and pipes, terminals, limits.

A port to another system is written here and nowhere else. No other module imports a module of
POSIX, opens a file by flags, compares an owner, or reads a file of the kernel;
`tests/docs/test_system_calls.py` holds that. The modules here import those of POSIX within
their functions, so that everything can be imported on any system. They know nothing of Tidegate:
their errors are OSError, which their callers put into words.
"""
