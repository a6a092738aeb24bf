"""The windows and tabs of a session."""
