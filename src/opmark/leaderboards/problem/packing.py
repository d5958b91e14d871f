"""The layout of everything that compiled code receives: a problem's arrays in one buffer, and room for a schedule."""

from collections import namedtuple
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from opmark.leaderboards.problem.integers import Integers


class Sizes(NamedTuple):
    """The lengths of all dimensions, and switches of the event simulation (0 or 1).

    `liveness`: memory is tracked by liveness; `classes`: classes of interference; `multicast` and `fifo`: as in
    `EventRules`; `outputs_stay`: graph outputs keep their memory on the host.
    """

    units: int
    tensors: int
    devices: int
    types: int
    links: int
    ports: int
    host: int
    liveness: int
    classes: int
    multicast: int
    fifo: int
    outputs_stay: int


class Room(NamedTuple):
    """Arrays that the event simulation fills: the times of all units and transfers, and peak bytes per device.

    `info` is (latency, transfers, hops, culprit, device of the culprit). Transfers of a tensor lie in rows of
    `transfer_offsets`, hops of a transfer in rows of `hop_offsets`.
    """

    info: Integers
    unit_start: Integers
    unit_end: Integers
    transfer_offsets: Integers
    transfer_tensor: Integers
    transfer_destination: Integers
    hop_offsets: Integers
    hop_link: Integers
    hop_start: Integers
    hop_end: Integers
    peak: Integers


@dataclass(frozen=True, kw_only=True)
class PackedFields:
    """The arrays behind the sizes, in their order; the only list of them.

    Shapes: U units, M tensors, D devices, T device types, L links, S distinct tensor sizes, C interference classes.

    `exec_ns` is U×T, -1 if a type cannot run the unit; `hop_ns` is S×L; `boundary_ns` is M×T; `interference` is T×C×C,
    in millionths; routes are rows of source·D + destination. Two-dimensional arrays lie flat. Request r consists of the
    units and tensors from `request_units[r]` and `request_tensors[r]` to the next, and arrives at `release_ns[r]`;
    `request_urgency` is that of a transfer for which only the host waits. A problem by itself is one request at time 0.
    """

    exec_ns: Integers
    workspace_bytes: Integers
    input_offsets: Integers
    input_tensors: Integers
    output_offsets: Integers
    output_tensors: Integers
    tensor_bytes: Integers
    tensor_producer: Integers
    tensor_home: Integers
    tensor_output: Integers
    tensor_size_class: Integers
    consumer_offsets: Integers
    consumer_units: Integers
    boundary_ns: Integers
    device_type: Integers
    device_slots: Integers
    device_dispatch_ns: Integers
    device_blocking: Integers
    link_source: Integers
    link_destination: Integers
    link_port: Integers
    route_offsets: Integers
    route_links: Integers
    hop_ns: Integers
    weight_offsets: Integers
    weight_ids: Integers
    weight_bytes: Integers
    link_second_port: Integers
    unit_class: Integers
    interference: Integers
    release_ns: Integers
    request_units: Integers
    request_tensors: Integers
    request_urgency: Integers
    device_copying: Integers


FIELDS = ("sizes", *(field.name for field in fields(PackedFields)))
_named: Any = namedtuple  # a type checker wants the names once more
# The arrays inside compiled code, which takes no dataclass.
PackedArrays = _named("PackedArrays", FIELDS[1:])
