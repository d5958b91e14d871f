"""The problem and its parts: units, tensors, a cluster, costs, rules; placements and schedules; arrays of all."""
