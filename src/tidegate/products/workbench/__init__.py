"""The tools of document 001, for clients of a database workbench."""
