"""The rows of changes that can be taken back."""
