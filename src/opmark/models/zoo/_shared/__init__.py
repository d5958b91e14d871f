"""Building blocks and rules that network families share."""
