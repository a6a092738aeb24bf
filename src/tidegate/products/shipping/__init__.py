"""Ships the record to other systems."""
