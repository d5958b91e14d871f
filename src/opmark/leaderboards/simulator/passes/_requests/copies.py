"""The arrays of a serving problem's whole trace: a copy of the served network for every request."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.integers import Integers, taken_rows
from opmark.leaderboards.problem.problem import Problem

Rows = tuple[Integers, Integers, Integers]


@dataclass(frozen=True, kw_only=True)
class RequestCopies:
    """R requests in the order of their arrival, then of their networks, then of the trace.

    `arrival_ns`, `target_ns` and `network`, by number, are R; `unit_of` and `tensor_of` are the original of each copy,
    in rows of `units` and `tensors` per request.
    """

    arrival_ns: Integers
    target_ns: Integers
    network: Integers
    units: Integers
    tensors: Integers
    unit_of: Integers
    tensor_of: Integers

    @cached_property
    def request_of_unit(self) -> Integers:
        """The request of each copied unit."""
        return np.repeat(np.arange(len(self.arrival_ns)), np.diff(self.units))

    def arrays(self, base: ProblemArrays) -> ProblemArrays:
        """All requests as one graph; a request's outputs leave once they are on the host, earlier requests go first."""
        unit_at = self._places(self.units, self.unit_of, base.units)
        tensor_at = self._places(self.tensors, self.tensor_of, len(base.tensor_bytes))
        of_unit = self.request_of_unit
        of_tensor = np.repeat(np.arange(len(self.arrival_ns)), np.diff(self.tensors))

        def linked(rows: Rows, request: Integers, start: Integers, at: Integers) -> Integers:
            _, found, place = rows
            return start[request[place]] + at[found]

        inputs = taken_rows(base.input_offsets, base.input_tensors, self.unit_of)
        outputs = taken_rows(base.output_offsets, base.output_tensors, self.unit_of)
        consumers = taken_rows(base.consumer_offsets, base.consumer_units, self.tensor_of)
        weight_offsets, weights, _ = taken_rows(base.weight_offsets, base.weight_ids, self.unit_of)
        maker = base.tensor_producer[self.tensor_of]
        types = base.sizes.types
        sizes = base.sizes._replace(units=len(self.unit_of), tensors=len(self.tensor_of), outputs_stay=0)
        count = len(self.arrival_ns)
        return replace(
            base,
            sizes=sizes,
            exec_ns=base.exec_ns.reshape(-1, types)[self.unit_of].reshape(-1),
            workspace_bytes=base.workspace_bytes[self.unit_of],
            input_offsets=inputs[0],
            input_tensors=linked(inputs, of_unit, self.tensors, tensor_at),
            output_offsets=outputs[0],
            output_tensors=linked(outputs, of_unit, self.tensors, tensor_at),
            tensor_bytes=base.tensor_bytes[self.tensor_of],
            tensor_producer=np.where(maker < 0, -1, self.units[of_tensor] + unit_at[maker]),
            tensor_home=base.tensor_home[self.tensor_of],
            tensor_output=base.tensor_output[self.tensor_of],
            tensor_size_class=base.tensor_size_class[self.tensor_of],
            consumer_offsets=consumers[0],
            consumer_units=linked(consumers, of_tensor, self.units, unit_at),
            boundary_ns=base.boundary_ns.reshape(-1, types)[self.tensor_of].reshape(-1),
            weight_offsets=weight_offsets,
            weight_ids=weights,
            unit_class=base.unit_class[self.unit_of] if len(base.unit_class) else base.unit_class,
            release_ns=self.arrival_ns,
            request_units=self.units,
            request_tensors=self.tensors,
            request_urgency=np.arange(count - 1, -1, -1, dtype=np.int64) * (base.units + 1),
            colocation=base.colocation[self.unit_of],
            topological=np.zeros(0, dtype=np.int64),
        )

    def priority(self, own: Integers) -> Integers:
        """A priority per copy from one per unit (rows of them): earlier requests first, then as the unit says."""
        whole = np.atleast_2d(own)
        rank = np.empty_like(whole)
        for row, values in enumerate(whole):
            rank[row] = np.unique(values, return_inverse=True)[1] + 1
        earlier = len(self.arrival_ns) - 1 - self.request_of_unit
        found: Integers = rank[:, self.unit_of] + earlier * (whole.shape[1] + 1)
        return found

    def order(self, rows: Sequence[Sequence[int]], units: int) -> list[list[int]]:
        """A strict order per device: the requests one after the other, each in the order given for one."""
        place = self._places(self.units, self.unit_of, units)
        network = np.full(units, -1, dtype=np.int64)
        network[self.unit_of] = self.network[self.request_of_unit]
        starts = list(zip(self.units.tolist(), self.network.tolist(), strict=False))
        return [
            [start + int(place[unit]) for start, number in starts for unit in row if network[unit] == number]
            for row in rows
        ]

    @staticmethod
    def _places(offsets: Integers, copied: Integers, count: int) -> Integers:
        """The position of each original within a request of its network, which holds all of it in order."""
        found = np.zeros(count, dtype=np.int64)
        found[copied] = np.arange(len(copied)) - np.repeat(offsets[:-1], np.diff(offsets))
        return found


def request_copies(problem: Problem) -> RequestCopies:
    """The copies of a serving problem, worked out once."""
    known = problem.worked_out.get("request_copies")
    if not isinstance(known, RequestCopies):
        known = problem.worked_out["request_copies"] = _copies(problem)
    return known


def _copies(problem: Problem) -> RequestCopies:
    number = {unit.name: index for index, unit in enumerate(problem.units)}
    network_of = np.zeros(len(problem.units), dtype=np.int64)
    for index, stream in enumerate(problem.arrivals):
        for name in stream.units:
            network_of[number[name]] = index
    tensor_network = np.zeros(len(problem.tensors), dtype=np.int64)
    for index, tensor in enumerate(problem.tensors):
        ends = [name for name in (tensor.producer, *tensor.consumers) if name]
        tensor_network[index] = network_of[number[ends[0]]] if ends else 0
    trace = sorted(
        (time, network, place, stream.target_ns)
        for network, stream in enumerate(problem.arrivals)
        for place, time in enumerate(stream.arrival_ns)
    )
    own_units = [np.flatnonzero(network_of == index) for index in range(len(problem.arrivals))]
    own_tensors = [np.flatnonzero(tensor_network == index) for index in range(len(problem.arrivals))]
    networks = [network for _, network, _, _ in trace]
    return RequestCopies(
        arrival_ns=np.array([time for time, *_ in trace], dtype=np.int64),
        target_ns=np.array([target for *_, target in trace], dtype=np.int64),
        network=np.array(networks, dtype=np.int64),
        units=np.cumsum([0, *(len(own_units[network]) for network in networks)]).astype(np.int64),
        tensors=np.cumsum([0, *(len(own_tensors[network]) for network in networks)]).astype(np.int64),
        unit_of=np.concatenate([own_units[network] for network in networks]),
        tensor_of=np.concatenate([own_tensors[network] for network in networks]),
    )
