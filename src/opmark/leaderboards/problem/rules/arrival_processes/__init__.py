"""Ways in which requests are spread over time, one file each."""
