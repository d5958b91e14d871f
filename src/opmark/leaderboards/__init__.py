"""Problems, the simulator, and standings."""
