"""Independent tasks, run here or on a cluster behind one interface."""
