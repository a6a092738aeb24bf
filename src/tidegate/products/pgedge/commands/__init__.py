"""The commands of questions in plain words: `tidegate ask`, `tidegate pair`."""
