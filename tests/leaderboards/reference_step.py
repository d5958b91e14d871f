"""A training step of micro-batches once more: its copies spelt out, blocks in an explicit list, the slow simulator."""

from dataclasses import replace

from tests.leaderboards.reference import Reference, upward_ranks

from opmark.leaderboards.problem.fields import Tensor


def blocks(schedule, micro_batches, behind):
    """What one stage does, in order: ("F", 0), ("F", 1), …"""
    if schedule == "fill-drain":
        forward = [("F", m) for m in range(micro_batches)]
        return forward + [("B", m) for m in reversed(range(micro_batches))]
    ahead = min(behind, micro_batches)
    found = [("F", m) for m in range(ahead)]
    for m in range(micro_batches):
        found.append(("B", m))
        if m + ahead < micro_batches:
            found.append(("F", m + ahead))
    return found


def stages_behind(problem, places):
    """Per device, how many can be reached along the pipeline, itself included."""
    phase = {unit.name: unit.phase for unit in problem.units}
    after = {}
    for tensor in problem.tensors:
        for reader in tensor.consumers:
            if tensor.producer and phase[tensor.producer] == phase[reader] != "update":
                ends = places[tensor.producer], places[reader]
                if phase[reader] == "backward":
                    ends = ends[::-1]
                after.setdefault(ends[0], set()).add(ends[1])
    used = {places[name] for name in phase if phase[name] != "update"}
    found = {}
    for name in used:
        seen, todo = {name}, [name]
        while todo:
            for other in after.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        found[name] = len(seen)
    return found


def sequence(problem, ranks):
    """Units one by one: of those whose inputs are there, the one of highest rank, then the first of the file."""
    left, order = list(problem.units), []
    made = {tensor.name: tensor.producer for tensor in problem.tensors}
    reads = {unit.name: [t.name for t in problem.tensors if unit.name in t.consumers] for unit in problem.units}
    while left:
        ready = [u for u in left if all(not made[t] or made[t] in order for t in reads[u.name])]
        best = max(ready, key=lambda u: ranks[u.name])
        order.append(best.name)
        left.remove(best)
    return order


class StepReference:
    """`cost`, `peak` and `stash` of a step whose gradients stay where they are made."""

    def __init__(self, problem, places, schedule, priority=None):
        count = problem.micro_batches
        phase = {unit.name: unit.phase for unit in problem.units}
        passing = [unit for unit in problem.units if unit.phase != "update"]
        updates = [unit for unit in problem.units if unit.phase == "update"]
        order = sequence(problem, priority or upward_ranks(problem))
        behind = stages_behind(problem, places)
        first = count - 1 if schedule == "fill-drain" else 0
        units = [replace(unit, name=f"{unit.name}@{m}", colocation="") for m in range(count) for unit in passing]
        units += [replace(unit, colocation="") for unit in updates]
        tensors = []
        for tensor in problem.tensors:
            readers = [name for name in tensor.consumers if phase[name] != "update"]
            total = [name for name in tensor.consumers if phase[name] == "update"]
            if total and not tensor.producer:  # what updates read from outside is there once
                tensors.append(replace(tensor, consumers=tuple(total), output=False))
                if not readers:
                    continue
                total = []
            for m in range(count):
                producer = f"{tensor.producer}@{m}" if tensor.producer else ""
                own = tuple(f"{name}@{m}" for name in readers)
                if total and m != first:  # its gradient was added to the first one's
                    tensors.append(
                        Tensor(name=f"{tensor.name}+{m}", size_bytes=0, producer=producer, consumers=tuple(total))
                    )
                if not total or m == first or own or tensor.output:
                    wanted = (*own, *total) if m == first else own
                    tensors.append(replace(tensor, name=f"{tensor.name}@{m}", producer=producer, consumers=wanted))
        device = {unit.name: places[unit.name.rpartition("@")[0] or unit.name] for unit in units}
        rows, self.stash = {}, {}
        for where in sorted(set(device.values())):
            rows[where] = []
            flying = most = 0
            for kind, m in blocks(schedule, count, behind[where]) if where in behind else ():
                flying += 1 if kind == "F" else -1
                most = max(most, flying)
                wanted = "forward" if kind == "F" else "backward"
                rows[where] += [f"{n}@{m}" for n in order if phase[n] == wanted and places[n] == where]
            rows[where] += [name for name in order if phase[name] == "update" and places[name] == where]
            self.stash[where] = most
        place = {name: index for index, name in enumerate(order)}
        urgency = {f"{unit.name}@{m}": -m * len(order) - place[unit.name] for m in range(count) for unit in passing}
        urgency |= {unit.name: -count * len(order) - place[unit.name] for unit in updates}
        whole = replace(
            problem,
            micro_batches=0,
            memory_mode="liveness",
            units=tuple(units),
            tensors=tuple(tensors),
            objective="latency",
        )
        self.run = Reference(whole, device, urgency, rows, leave=True)
        self.cost, self.peak = self.run.cost, self.run.peak
