"""Arguments of the command line, by what they are about. No behavior."""
