"""How PostgreSQL is searched (`ranking.Legs`)."""

from tidegate.search.postgres_vectors import by_vector
from tidegate.search.postgres_words import by_words

__all__ = ["by_vector", "by_words"]
