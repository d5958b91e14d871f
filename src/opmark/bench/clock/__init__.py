"""The lowest layer: the machine, its clocks and the rules of measuring."""
