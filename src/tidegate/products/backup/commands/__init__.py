"""The command `state`."""
