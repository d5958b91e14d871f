"""Hardware: devices and clusters of them, the links between them, and targets."""
