"""The state in PostgreSQL 14 or newer, which gates on several machines share. Decision 126."""
