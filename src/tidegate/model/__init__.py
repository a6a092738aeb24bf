"""The values that travel from an edge to a database and back. They import only each other."""
