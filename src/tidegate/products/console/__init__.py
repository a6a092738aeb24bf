"""The console: pages for people who approve, look and give rights, in the server's own process."""
