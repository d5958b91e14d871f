"""Numbers shown beside a score, one file each."""
