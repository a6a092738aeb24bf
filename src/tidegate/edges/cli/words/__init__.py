"""What may be said on the command line, by what it is about. Says nothing of what it does."""
