"""Parse and print durations, sizes and counts."""

import math
import re

from opmark.core.errors import UsageError

_MOST_SECONDS = 10 * 366 * 24 * 3600.0
NS_PER_S = 1_000_000_000
_DURATION = re.compile(r"^\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h)?\s*$")
_SECONDS_PER_UNIT = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZE = re.compile(r"^\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>[kKMGT]i?)?B?\s*$")
_BYTES_PER_UNIT = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES_PER_UNIT |= {"ki": 2**10, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def parse_duration_s(text: str) -> float:
    """The seconds in a text such as `90`, `90s`, `10m`, `2h` or `500ms`. Raises `UsageError`."""
    match = _DURATION.fullmatch(text)
    seconds = float(match["value"]) * _SECONDS_PER_UNIT[match["unit"] or "s"] if match else math.inf
    if seconds > _MOST_SECONDS:
        raise UsageError(
            f"{text[:40]!r} is not a duration", hint="write it like 90, 90s, 500ms, 10m or 2h; ten years at most"
        )
    return seconds


def parse_size_bytes(text: str) -> int:
    """The bytes in a text such as `4096`, `64KiB`, `2GiB` or `1.5GB`. Raises `UsageError`."""
    match = _SIZE.fullmatch(text)
    if match is None or len(match["value"]) > 24:
        raise UsageError(f"{text[:40]!r} is not a size", hint="write it like 4096, 64KiB or 2GiB")
    return round(float(match["value"]) * (_BYTES_PER_UNIT[match["unit"]] if match["unit"] else 1))


def format_ns(latency_ns: float) -> str:
    """A latency with three significant digits, in ns, µs, ms or s."""
    if math.isnan(latency_ns):
        return "–"
    latency_ns = _rounded(latency_ns)
    for limit, divisor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if abs(latency_ns) < limit:
            return f"{_significant(latency_ns / divisor)} {unit}"
    return f"{_significant(latency_ns / 1e9)} s"


def format_bytes(size_bytes: float) -> str:
    """A size with three significant digits and a binary prefix."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size_bytes) < 1024:
            return f"{_significant(size_bytes)} {unit}"
        size_bytes /= 1024
    return f"{_significant(size_bytes)} TiB"


def format_count(count: float) -> str:
    """A count with three significant digits and a decimal prefix, as FLOPs are written."""
    count = _rounded(count)
    for unit in ("", "k", "M", "G"):
        if abs(count) < 1000:
            return f"{_significant(count)} {unit}".rstrip()
        count /= 1000
    return f"{_significant(count)} T"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 pair`, `1,204 pairs`, `2 batches`, `3 families`."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def format_duration(seconds: float) -> str:
    """A duration such as `42 s`, `3 min 20 s` or `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _rounded(value: float) -> float:
    """Round to three significant digits, so that 999.9 ns becomes 1.00 µs and not 1000 ns."""
    return float(f"{value:.2e}")


def _significant(value: float) -> str:
    if value == 0:
        return "0"
    value = _rounded(value) if abs(value) < 1000 else value
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 3)}f}"
