"""Jobs that cross rooms, one file each."""
