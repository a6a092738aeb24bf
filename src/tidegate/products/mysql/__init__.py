"""MariaDB and MySQL: their engine and dialect."""
