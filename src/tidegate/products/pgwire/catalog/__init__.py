"""PostgreSQL's system catalogs of sources that are no PostgreSQL, for clients that look there."""
