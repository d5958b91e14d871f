"""Crossings share the bytes of one tensor, and no two tensors share any."""

from itertools import pairwise

from opmark.bench.execution.programme import CrossingTable, Programme


def test_a_tensor_crosses_once_to_each_device_and_is_written_once() -> None:
    table = CrossingTable()
    first = table.number(tensor="t", received_as="t", source=0, destination=1, size_bytes=10)
    again = table.number(tensor="t", received_as="t", source=0, destination=1, size_bytes=10)
    other = table.number(tensor="t", received_as="u", source=0, destination=2, size_bytes=10)
    assert first == again != other
    one, two = table.all()
    assert one.offset == two.offset


def test_tensors_do_not_overlap_and_all_of_them_fit() -> None:
    table = CrossingTable()
    for name, size in (("a", 5000), ("b", 1), ("c", 4096)):
        table.number(tensor=name, received_as=name, source=0, destination=1, size_bytes=size)
    spans = sorted((one.offset, one.offset + one.size_bytes) for one in table.all())
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert Programme(devices=(), crossings=table.all()).shared_bytes >= spans[-1][1]
    assert Programme(devices=(), crossings=()).shared_bytes == 0


def test_a_tensor_under_two_names_crosses_twice_and_is_written_once() -> None:
    table = CrossingTable()
    whole = table.number(tensor="t", received_as="t", source=0, destination=1, size_bytes=10)
    reshaped = table.number(tensor="t", received_as="u", source=0, destination=1, size_bytes=10)
    assert whole != reshaped
    one, two = table.all()
    assert (one.received_as, two.received_as) == ("t", "u")
    assert one.offset == two.offset
