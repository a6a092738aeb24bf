"""A small HTTP/1.1 server on asyncio and llhttp: requests in, answers out, nothing of MCP."""
