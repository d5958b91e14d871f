"""OpMark: measured operator latencies, predictors, and placement leaderboards."""
