"""Pages of the leaderboard site, one file each."""
