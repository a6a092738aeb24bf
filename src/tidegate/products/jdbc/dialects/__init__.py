"""The dialects of databases that only a JDBC driver reaches."""
