"""The gate: the steps that every call passes, and the sources behind it."""
