"""The layout of everything that compiled code receives: a problem's arrays in one buffer, and room for a schedule."""

from typing import NamedTuple

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


class PackedArrays(NamedTuple):
    """The arrays behind the sizes, in their order; `ProblemArrays` explains them."""

    # Append only, here and in `Sizes`: numba's cache of one file does not notice changes of another.
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


FIELDS = ("sizes", *PackedArrays._fields)
