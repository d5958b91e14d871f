"""Command groups, one file each; the file name is the command name."""
