"""The sample shop: a made-up database that is the same on every machine."""
