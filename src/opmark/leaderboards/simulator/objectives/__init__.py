"""What a placement is judged by, one file each."""
