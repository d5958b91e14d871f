"""Run programs of others with limited rights: what they can see, use and print."""
