"""Questions in plain language, answered with SQL that the gate judges and runs as the caller."""
