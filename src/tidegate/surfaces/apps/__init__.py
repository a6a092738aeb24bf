"""MCP Apps: the page that a client may show beside the text of an answer."""
