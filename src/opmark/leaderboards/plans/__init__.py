"""Measured training plans: layers on stages, replicas and tensor-parallel groups, replayed by the simulator."""
