"""Requests in flight once more: every request's graph spelt out, in the slow reference simulator."""

from dataclasses import replace
from math import ceil

from tests.leaderboards.reference import Reference, upward_ranks

from opmark.leaderboards.problem.problem import Problem


class RequestsReference:
    """`latencies`, `p99` and `peak` of one placement of a serving problem."""

    def __init__(self, problem, places, priority=None, order=None, replicas=None, profile="opsim1"):
        trace = sorted(
            (time, network, position)
            for network, stream in enumerate(problem.arrivals)
            for position, time in enumerate(stream.arrival_ns)
        )
        ranks = priority or upward_ranks(problem)
        stages = {name: [name, *(replicas or {}).get(name, ())] for name in places.values()}
        units, tensors, device, urgency, release, lowest = [], [], {}, {}, {}, {}
        queue = {name: [] for name in (order or {})}
        request_of = {}
        for number, (time, network, _) in enumerate(trace):
            own = set(problem.arrivals[network].units) or {unit.name for unit in problem.units}
            step = (len(trace) - number) * 2**80
            for unit in problem.units:
                if unit.name in own:
                    name = f"{unit.name}@{number}"
                    units.append(replace(unit, name=name, colocation=""))
                    members = stages[places[unit.name]]
                    device[name] = members[number % len(members)]
                    urgency[name] = step + 2**70 + ranks[unit.name]
                    release[name] = time
                    request_of[name] = number
            for tensor in problem.tensors:
                ends = [name for name in (tensor.producer, *tensor.consumers) if name]
                if ends[0] in own if ends else network == 0:
                    index = len(tensors)
                    release[index], lowest[index] = time, step
                    tensors.append(
                        replace(
                            tensor,
                            name=f"{tensor.name}@{number}",
                            producer=f"{tensor.producer}@{number}" if tensor.producer else "",
                            consumers=tuple(f"{name}@{number}" for name in tensor.consumers),
                        )
                    )
                    request_of[index] = number
            for name, row in queue.items():
                row += [f"{unit}@{number}" for unit in order[name] if unit in own]
        whole = replace(problem, objective="latency", arrivals=(), units=tuple(units), tensors=tuple(tensors))
        assert isinstance(whole, Problem)
        self.run = Reference(whole, device, urgency, queue, profile, release=release, lowest=lowest, leave=True)
        last = [time for time, _, _ in trace]
        for name, end in self.run.end.items():
            last[request_of[name]] = max(last[request_of[name]], end)
        for (index, _), end in self.run.arrival.items():
            last[request_of[index]] = max(last[request_of[index]], end)
        self.latencies = [end - time for end, (time, _, _) in zip(last, trace, strict=True)]
        self.p99 = sorted(self.latencies)[ceil(0.99 * len(trace)) - 1]
        self.peak = self.run.peak
