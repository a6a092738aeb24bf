"""The gate: the steps that every call passes, and the sources that it opens."""
