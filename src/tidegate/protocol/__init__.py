"""The Model Context Protocol kernel: one dispatcher for every revision and transport."""
