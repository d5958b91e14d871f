"""Constraints of a program that minimises loads: prices of transfers, and contiguous parts.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, sections 3 and 4.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.direct_models import device_prices

# Per unit and device a literal that is true if the unit lies there; absent if it cannot.
Choices = Sequence[Mapping[int, Any]]
Loads = Sequence[list[tuple[Any, int]]]


def add_exchange(model: Any, problem: Problem, choices: Choices, load: Loads) -> None:
    """Add to `load`, in ns: each device pays once for a tensor that it takes in, and once for one that it sends out."""
    arrays = problem.arrays
    out, into = device_prices(problem)
    for tensor, maker in enumerate(arrays.tensor_producer.tolist()):
        first, last = arrays.consumer_offsets[tensor], arrays.consumer_offsets[tensor + 1]
        origin = choices[maker] if maker >= 0 else {int(arrays.tensor_home[tensor]): 1}
        # units of one class share their choices
        wanted = {id(choices[unit]): choices[unit] for unit in arrays.consumer_units[first:last].tolist()}
        wanted.pop(id(origin), None)
        targets: list[Mapping[int, Any]] = [
            *wanted.values(),
            *([{arrays.host: 1}] if arrays.tensor_output[tensor] else []),
        ]
        for device in range(arrays.devices):
            taken = [(one[device], origin.get(device, 0)) for one in targets if device in one]
            sent = [(origin[device], one.get(device, 0)) for one in targets if device in origin]
            for price, pairs in ((int(into[tensor, device]), taken), (int(out[tensor, device]), sent)):
                if price and pairs:
                    paid = model.new_bool_var("")
                    for yes, no in pairs:
                        model.add(paid >= yes - no)
                    load[device].append((paid, price))


def add_contiguity(model: Any, problem: Problem, choices: Choices) -> None:
    """No path between forward units leaves a device and returns: what left has nothing of it behind (program 4)."""
    arrays = problem.arrays
    forward = [unit.phase == "forward" for unit in problem.units]
    edges = {
        (maker, int(reader))
        for tensor, maker in enumerate(arrays.tensor_producer.tolist())
        if maker >= 0 and forward[maker]
        for reader in arrays.consumer_units[arrays.consumer_offsets[tensor] : arrays.consumer_offsets[tensor + 1]]
        if forward[reader]
    }
    for device in range(arrays.devices):
        # true if the unit, or one behind it, is on the device
        ahead = {unit: model.new_bool_var("") for unit in range(arrays.units) if forward[unit]}
        for unit, literal in ahead.items():
            if device in choices[unit]:
                model.add_implication(choices[unit][device], literal)
        for before, after in sorted(edges):
            model.add_implication(ahead[after], ahead[before])
            model.add(ahead[after] <= choices[after].get(device, 0) - choices[before].get(device, 0) + 1)
