"""Ways to keep replicas equal, one file each."""
