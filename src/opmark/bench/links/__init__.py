"""Transfers between the devices of one machine."""
