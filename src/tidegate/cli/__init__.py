"""The command line of the kernel: its arguments, its commands, what they share."""
