"""How SQLite is searched (`ranking.Legs`): vectors exactly by sqlite-vec, words by FTS5."""
