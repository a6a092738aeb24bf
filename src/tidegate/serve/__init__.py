"""A server: the edges of an application, how they run together, and what it says of itself."""
