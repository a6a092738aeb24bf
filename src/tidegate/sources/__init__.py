"""What people do with saved sources, the same by commands and in the console."""
