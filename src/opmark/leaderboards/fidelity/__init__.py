"""The error of the simulator: placements executed on real devices beside their prediction."""
