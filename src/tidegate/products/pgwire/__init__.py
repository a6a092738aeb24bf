"""The PostgreSQL wire protocol: psql, drivers and BI tools enter through the same gate as an
agent."""
