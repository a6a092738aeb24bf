"""The statements that callers sent before."""
