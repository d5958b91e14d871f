"""A schedule as Chrome-trace JSON (opens in Perfetto): kernels, transfers, memory."""

from typing import Any

from opmark.core.canonical import plain
from opmark.leaderboards.problem.placement import solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PublishedModel, profile_named
from opmark.leaderboards.simulator.evaluation import Evaluation
from opmark.leaderboards.simulator.memory import memory_steps

DEVICES = 1
LINKS = 2
# What a trace says of a solution that splits or recomputes units.
DECIDED = ("device", "replicas", "schedule", "splits", "recompute")


def chrome_trace(problem: Problem, evaluation: Evaluation, profile: PublishedModel | None = None) -> dict[str, Any]:
    """One row per device, one per link, one memory counter per device; `profile` is the problem's own by default.

    If replicas shared the pass, every part of a unit has its own bar; so has every copy in several passes. Of a front
    the first placement is shown, with the cost that it has alone.

    `ts` and `dur` are in µs, as the format wants; exact ns stand in `args`, so that the trace can be checked again.
    """
    rules = profile_named(problem.profile) if profile is None else profile
    evaluation = evaluation.front[0] if evaluation.front else evaluation
    facts = _facts(problem, evaluation, rules)
    problem, placement, schedule = evaluation.shown(problem)
    events: list[dict[str, Any]] = [_name(DEVICES, "devices"), _name(LINKS, "links")]
    events += [_name(DEVICES, device.name, number) for number, device in enumerate(problem.cluster.devices)]
    links = [f"{link.source} → {link.destination}" for link in problem.cluster.links]
    events += [_name(LINKS, name, number) for number, name in enumerate(links)]
    for number, unit in enumerate(problem.units):
        span = int(schedule.unit_start_ns[number]), int(schedule.unit_end_ns[number])
        row = DEVICES, int(placement.device[number])
        events.append(_span(unit.name, row, span, {"unit": unit.name, "phase": unit.phase}))
    offsets = schedule.hop_offsets.tolist()
    for transfer, tensor in enumerate(schedule.transfer_tensor.tolist()):
        name = problem.tensors[tensor].name
        to = problem.cluster.devices[int(schedule.transfer_destination[transfer])].name
        for hop in range(offsets[transfer], offsets[transfer + 1]):
            span = int(schedule.hop_start_ns[hop]), int(schedule.hop_end_ns[hop])
            passed = {"tensor": name, "destination": to, "hop": hop - offsets[transfer]}
            events.append(_span(name, (LINKS, int(schedule.hop_link[hop])), span, passed))
    if problem.memory_mode == "liveness" and rules.model is None:
        for holder, steps in zip(problem.cluster.devices, memory_steps(problem, placement, schedule), strict=True):
            for time, held in steps:
                counter = {"ph": "C", "pid": DEVICES, "name": f"memory {holder.name}", "ts": time / 1000}
                events.append({**counter, "args": {"bytes": held}})
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": facts}


def _facts(problem: Problem, evaluation: Evaluation, rules: PublishedModel) -> dict[str, Any]:
    facts = {"problem": problem.name, "problem_id": problem.id, "profile": rules.name, "cost_ns": evaluation.cost}
    if evaluation.decisions is not None:
        facts |= {key: value for key, value in plain(evaluation.decisions).items() if key in DECIDED and value}
    elif evaluation.placement.replicas or evaluation.schedule.expanded is not None:
        # The bars of replicas or copies do not show by themselves which stage they belong to.
        solution = solution_of(problem, evaluation.placement)
        facts |= {"device": dict(solution.device), "replicas": dict(solution.replicas or {})}
        if solution.schedule:
            facts["schedule"] = solution.schedule
    told = evaluation.facts(problem) if rules.model is None else {}
    return {**facts, "passes": told} if told else facts


def _name(process: int, name: str, row: int | None = None) -> dict[str, Any]:
    kind = "process_name" if row is None else "thread_name"
    return {"ph": "M", "pid": process, "tid": row or 0, "name": kind, "args": {"name": name}}


def _span(name: str, row: tuple[int, int], span_ns: tuple[int, int], facts: dict[str, Any]) -> dict[str, Any]:
    start_ns, end_ns = span_ns
    return {
        "ph": "X",
        "pid": row[0],
        "tid": row[1],
        "name": name,
        "ts": start_ns / 1000,
        "dur": (end_ns - start_ns) / 1000,
        "args": {**facts, "start_ns": start_ns, "end_ns": end_ns},
    }
