"""Building, reading and describing releases."""
