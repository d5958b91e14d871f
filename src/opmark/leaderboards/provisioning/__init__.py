"""Provisioning: which device types to rent for a network, how many of each, and where its parts run."""
