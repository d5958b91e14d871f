"""Running programs that nobody here has read: what they may see, use and say."""
