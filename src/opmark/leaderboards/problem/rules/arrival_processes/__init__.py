"""Processes that draw the arrival times of requests, one file each."""
