"""The statements that callers sent before, and the rows of their changes."""
