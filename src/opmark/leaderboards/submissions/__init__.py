"""The door: folders that others hand in, checked, packed, run against the clock and scored."""
