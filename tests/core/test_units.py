"""Durations and sizes, as typed and as printed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.errors import UsageError
from opmark.core.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_ns,
    parse_duration_s,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), (" 1.5 m ", 90), ("500ms", 0.5), ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-5", "-5m", "ten", "5 d", "1e3", "nan", "5m5"])
def test_what_is_not_a_duration(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration_s(text)
    assert caught.value.exit_code == 2
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("64KiB", 65536), ("64 kB", 64000), ("2GiB", 2**31), ("1.5GB", 1_500_000_000), ("1Mi", 2**20)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "-1", "5X", "GiB"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size_bytes(text)


@given(st.integers(min_value=0, max_value=80_000), st.sampled_from(["s", "m", "h"]))
def test_duration_units_scale(count: int, unit: str) -> None:
    assert parse_duration_s(f"{count}{unit}") == count * {"s": 1, "m": 60, "h": 3600}[unit]


@pytest.mark.parametrize(
    ("latency_ns", "text"),
    [
        (0, "0 ns"),
        (1, "1.00 ns"),
        (412, "412 ns"),
        (41_234, "41.2 µs"),
        (4_123_400, "4.12 ms"),
        (41_234_000_000, "41.2 s"),
        (-2_000, "-2.00 µs"),
        (9.999, "10.0 ns"),
        (999.7, "1.00 µs"),
        (999_999_999, "1.00 s"),
        (math.nan, "–"),
    ],
)
def test_latencies_as_people_write_them(latency_ns: float, text: str) -> None:
    assert format_ns(latency_ns) == text


@given(st.floats(min_value=1, max_value=1e14))
def test_a_printed_latency_is_within_half_a_percent(latency_ns: float) -> None:
    number, unit = format_ns(latency_ns).split()
    scale = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * scale == pytest.approx(latency_ns, rel=0.00501)


def test_bytes_and_counts() -> None:
    assert format_bytes(1536) == "1.50 KiB"
    assert format_bytes(3 * 2**40) == "3.00 TiB"
    assert format_bytes(9.999 * 1024) == "10.0 KiB"
    assert format_bytes(1020) == "1020 B"
    assert format_count(950) == "950"
    assert format_count(999_999) == "1.00 M"
    assert format_count(4_120_000_000) == "4.12 G"
    assert format_count(2e13) == "20.0 T"


def test_durations_as_people_write_them() -> None:
    assert [format_duration(s) for s in (42, 200, 7500)] == ["42 s", "3 min 20 s", "2 h 05 min"]


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "network", "0 networks"),
        (1, "batch", "1 batch"),
        (1204, "pair", "1,204 pairs"),
        (2, "batch", "2 batches"),
        (1, "family", "1 family"),
        (3, "family", "3 families"),
        (2, "day", "2 days"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
