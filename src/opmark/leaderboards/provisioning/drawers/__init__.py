"""Ways to draw hidden instances, one file each."""
