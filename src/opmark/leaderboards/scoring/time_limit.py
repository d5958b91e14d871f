"""When time is up, for OpMark's own placers and for submissions alike."""

# By problem size: (units at most, seconds).
BUDGETS_S = ((200, 2.0), (2000, 10.0))
BUDGET_LARGE_S = 60.0
# A program needs a moment to notice that its time is over and to print what it has.
EXTRA_S = 1.0
EXTRA_SHARE = 0.1


def budget_by_size_s(units: int) -> float:
    """The planning budget of a problem with so many units, in seconds."""
    return next((seconds for most, seconds in BUDGETS_S if units <= most), BUDGET_LARGE_S)


def hard_end_s(budget_s: float) -> float:
    """Seconds after which a run is ended and what it says is no longer heard."""
    return budget_s * (1 + EXTRA_SHARE) + EXTRA_S
