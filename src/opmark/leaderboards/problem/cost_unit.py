"""Whole costs, and what they are called in the unit a problem shows them in."""

from fractions import Fraction

# How many whole cost steps make one unit: ns for times, millionths of a millionth for money.
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "$": 10**12}


def in_unit(cost: int | Fraction, unit: str) -> int | float:
    """A cost in whole steps (or an exact fraction of them) in `unit`; a whole number only for ns."""
    steps = UNITS[unit]
    return round(cost) if steps == 1 else float(Fraction(cost) / steps)


def format_cost(cost: int | Fraction, unit: str) -> str:
    """A cost for people: times with their best prefix, money in its currency."""
    from opmark.core.units import format_ns

    return f"${in_unit(cost, unit):.6g}" if unit == "$" else format_ns(float(cost))
