"""What the PostgreSQL wire protocol adds to `serve`."""
