"""The signed record of every call: written, read, proved."""
