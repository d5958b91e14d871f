"""How long a device is measured to get the rows that a predictor learned from."""

# What the first release's collection came to on two shared cores, waiting for a slow clock included: 1.8 to 2.3 kernels
# a second at full quality (`benchmarks/throughput.py` prints a machine's own). Releases do not record it.
KERNELS_PER_SECOND = 2.0


def device_minutes(rows: int, kernels_per_second: float) -> float:
    """Minutes to measure `rows` kernels, both labels, at a steady pace."""
    return rows / kernels_per_second / 60


def assumption(kernels_per_second: float) -> str:
    """In words, beside every figure of device time."""
    return f"device minutes assume {kernels_per_second:g} kernels measured a second"
