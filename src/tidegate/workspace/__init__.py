"""The windows and tabs of an operator."""
