"""The latency model of dnn-partitioning: an accelerator's share is one call that waits for all its inputs.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 4: devices
of the host's type have as many cores as there are units and pay for no communication; any other device takes in,
computes and sends out in turn, without overlap. A share that a path leaves and returns to is cut into successive calls.
"""

from itertools import pairwise

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import INVALID_COST, Schedule
from opmark.leaderboards.simulator.direct_models import (
    check_supported,
    device_prices,
    summed_bytes,
    timed_schedule,
    unsupported,
)

Call = tuple[int, int]


class AtomicCalls:
    """ns until the last unit and the last call have ended."""

    def schedule(self, problem: Problem, placement: Placement) -> Schedule:
        """Units of a call run one after the other between its transfers.

        Raises `PlacementError` for replicas, or calls that wait for one another.
        """
        if placement.replicas:
            raise PlacementError("the model of atomic calls knows no replicas")
        check_supported(problem, placement.device)
        start, end, latency = _Calls(problem).run(placement.device.tolist())
        return timed_schedule(problem, placement.device, (start, end), latency)

    def costs(self, problem: Problem, devices: Integers) -> tuple[Integers, Integers]:
        """The latency per row."""
        calls = _Calls(problem)
        wrong = unsupported(problem, devices)
        costs = np.full(len(devices), INVALID_COST, dtype=np.int64)
        for index in np.flatnonzero(~wrong).tolist():
            try:
                costs[index] = calls.run(devices[index].tolist())[2]
            except PlacementError:
                continue
        return costs, summed_bytes(problem, devices)


class _Calls:
    def __init__(self, problem: Problem) -> None:
        arrays = problem.arrays
        self.problem = problem
        self.out, self.into = (table.tolist() for table in device_prices(problem))
        self.run_ns = arrays.run_ns.tolist()
        self.topological = arrays.topological.tolist()
        self.producer, self.home = arrays.tensor_producer.tolist(), arrays.tensor_home.tolist()
        self.returns = arrays.tensor_output.tolist()
        self.inputs = _rows(arrays.input_offsets, arrays.input_tensors)
        self.outputs = _rows(arrays.output_offsets, arrays.output_tensors)
        self.readers = _rows(arrays.consumer_offsets, arrays.consumer_units)
        self.free = [kind == arrays.device_type[arrays.host] for kind in arrays.device_type.tolist()]

    def run(self, place: list[int]) -> tuple[Integers, Integers, int]:
        """Start and end per unit and the end of the last call, in ns."""
        call = self._cut(place)
        members: dict[Call, list[int]] = {}
        for unit in self.topological:
            members.setdefault(call[unit], []).append(unit)
        waits = {key: self._waits(key, units, call) for key, units in members.items()}
        start, end = np.zeros(len(place), dtype=np.int64), np.zeros(len(place), dtype=np.int64)
        done: dict[Call, int] = {}
        pending = list(members)
        while pending:
            ready = [key for key in pending if waits[key] <= done.keys()]
            if not ready:
                names = ", ".join(sorted({self.problem.cluster.devices[device].name for device, _ in pending}))
                raise PlacementError(f"the calls of {names} wait for one another")
            for key in ready:
                begun = max((done[other] for other in waits[key]), default=0)
                taken, sent = self._transfers(key, members[key], call)
                clock = begun + taken
                for unit in members[key]:
                    start[unit] = clock
                    clock += self.run_ns[unit][key[0]]
                    end[unit] = clock
                done[key] = clock + sent
            pending = [key for key in pending if key not in done]
        return start, end, max(done.values())

    def _cut(self, place: list[int]) -> list[Call]:
        """Each unit's call: a number of its own on the host's type, else how often its device was returned to."""
        passed: list[dict[int, int]] = [{} for _ in place]
        call: list[Call] = [(0, 0)] * len(place)
        for unit in self.topological:
            own, number = place[unit], 0
            for tensor in self.inputs[unit]:
                before = self.producer[tensor]
                if before < 0:
                    continue
                for device, count in passed[before].items():
                    if device == own:
                        number = max(number, count + (place[before] != own))
                    else:
                        passed[unit][device] = max(passed[unit].get(device, 0), count)
            passed[unit][own] = number
            call[unit] = (own, unit if self.free[own] else number)
        return call

    def _waits(self, key: Call, units: list[int], call: list[Call]) -> set[Call]:
        before = {
            call[self.producer[tensor]] for unit in units for tensor in self.inputs[unit] if self.producer[tensor] >= 0
        }
        if not self.free[key[0]] and key[1] > 0:
            before.add((key[0], key[1] - 1))
        return before - {key}

    def _transfers(self, key: Call, units: list[int], call: list[Call]) -> tuple[int, int]:
        """ns to take everything in and to send everything out; nothing on the host's type."""
        device = key[0]
        if self.free[device]:
            return 0, 0
        taken = {tensor for unit in units for tensor in self.inputs[unit] if self._away(tensor, key, call)}
        sent = [
            tensor
            for unit in units
            for tensor in self.outputs[unit]
            if self.returns[tensor] or any(call[reader] != key for reader in self.readers[tensor])
        ]
        return sum(self.into[tensor][device] for tensor in taken), sum(self.out[tensor][device] for tensor in sent)

    def _away(self, tensor: int, key: Call, call: list[Call]) -> bool:
        maker = self.producer[tensor]
        return bool(self.home[tensor] != key[0]) if maker < 0 else call[maker] != key


def _rows(offsets: Integers, values: Integers) -> list[list[int]]:
    return [values[a:b].tolist() for a, b in pairwise(offsets)]


PROFILE = PublishedModel(
    name="atomic_calls", summary="dnn-partitioning's latency: one call per accelerator", model=AtomicCalls()
)
