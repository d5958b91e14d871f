"""What no placement can beat: relaxations of a problem, one file each."""
