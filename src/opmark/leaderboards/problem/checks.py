"""Findings about a whole problem: the rules that it names, its requests, and its graph."""

from collections.abc import Iterator

from opmark.leaderboards.problem.fields import COPIES_AT_MOST, MEMORY_MODES, SEMANTICS, ReferenceCosts
from opmark.leaderboards.problem.graph_checks import graph_findings, refuse
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES, UNITS
from opmark.leaderboards.problem.rules.profile import PROFILES
from opmark.leaderboards.problem.rules.synchronisation import SYNCHRONISATIONS

# Factors of interference are kept in millionths.
FACTOR_AT_MOST = 64.0
_PHASE_ORDER = {"forward": 0, "backward": 1, "update": 2}


def checked(problem: Problem, where: str) -> Problem:
    """`problem`, or one `ContentError` that names the first ten findings about it."""
    refuse(findings(problem), where)
    return problem


def findings(problem: Problem) -> list[str]:
    """One sentence for everything that is wrong with a problem."""
    wrong_cluster = problem.cluster.problems()
    if wrong_cluster:
        return wrong_cluster
    return [*rule_findings(problem), *arrival_findings(problem), *graph_findings(problem)]


def rule_findings(problem: Problem) -> Iterator[str]:
    """One sentence for each rule that a problem names wrongly."""
    if problem.semantics != SEMANTICS:
        yield f"semantics: this version knows {SEMANTICS}, not {problem.semantics!r}"
    for key, registry, name in (
        ("objective", OBJECTIVES, problem.objective),
        ("profile", PROFILES, problem.profile.replace("_", "-")),
        ("synchronisation", SYNCHRONISATIONS, problem.synchronisation),
    ):
        if name not in registry.names():
            yield f"{key}: one of {', '.join(registry.names())}, not {name!r}"
    known = ("$",) if problem.objective in {"cost", "rent"} else tuple(name for name in UNITS if name != "$")
    if problem.unit not in known:
        yield f"unit: one of {', '.join(known)}, not {problem.unit!r}"
    if not 0 <= problem.optimizer_state < 2**20:
        yield f"optimizer_state: must be from 0 to 2^20 times the weight's bytes, not {problem.optimizer_state}"
    if not 0 <= problem.micro_batches <= COPIES_AT_MOST:
        yield f"micro_batches: must not be negative, and at most {COPIES_AT_MOST:,}, not {problem.micro_batches}"
    if problem.reference is not None:
        yield from (f"reference.{text}" for text in reference_findings(problem.reference))
    if problem.in_micro_batches:
        yield from _step_findings(problem)
    if problem.limits or problem.fronted:
        yield from _limit_findings(problem)
    if problem.pipelined and any(device.own_copies for device in problem.cluster.devices):
        yield f"cluster.devices: own_copies is for schedules, not for the objective {problem.objective!r}"
    if problem.contiguous and len(problem.cluster.devices) > 62:
        yield f"contiguous: at most 62 devices, not {len(problem.cluster.devices)}"
    for type_name, table in problem.interference.items():
        for kind, row in table.items():
            for beside, factor in row.items():
                if not 1 <= factor <= FACTOR_AT_MOST:
                    key = f"interference.{type_name}.{kind}.{beside}"
                    yield f"{key}: must be from 1 to {FACTOR_AT_MOST:g}, not {factor}"
    if problem.memory_mode not in MEMORY_MODES:
        yield f"memory_mode: {', '.join(MEMORY_MODES[:-1])} or {MEMORY_MODES[-1]}, not {problem.memory_mode!r}"


def _limit_findings(problem: Problem) -> Iterator[str]:
    limits = problem.limits
    for name, value, most in (
        ("latency_ns", limits.latency_ns, 2**53),
        ("period_ns", limits.period_ns, 2**53),
        ("price_per_hour", limits.price_per_hour, 1e9),
    ):
        if not 0 <= value < most:
            yield f"limits.{name}: must not be negative, and below {most:,.0f}, not {value}"
    name = problem.profile.replace("_", "-")
    if name in PROFILES.names() and PROFILES.load(name).model is not None:
        yield f"profile: one that simulates events where there are limits, not {problem.profile!r}"
    if problem.fronted and not (limits.price_per_hour and bool(limits.latency_ns) != bool(limits.period_ns)):
        yield "limits: hypervolume needs a price and a time (latency_ns or period_ns) as its reference point"


def reference_findings(reference: ReferenceCosts) -> Iterator[str]:
    """One sentence for each cost that is out of range, and for a bound above the best known cost."""
    costs = {"bound_ns": reference.bound_ns, "best_known_ns": reference.best_known_ns}
    costs |= {f"bounds.{name}": value for name, value in reference.bounds.items()}
    if reference.guarantee_ns is not None:
        costs["guarantee_ns"] = reference.guarantee_ns
    for name, value in costs.items():
        if not 0 <= value < 2**63:
            yield f"{name}: must not be negative, and below 2^63, not {value}"
    if reference.bound_ns > reference.best_known_ns:
        yield f"bound_ns: {reference.bound_ns} is above best_known_ns {reference.best_known_ns}, so it bounds nothing"


def _step_findings(problem: Problem) -> Iterator[str]:
    """Forward feeds backward feeds update and nothing goes back, or micro-batches could not follow one another."""
    if problem.memory_mode == "sum":
        yield "memory_mode: liveness or stash where a step has micro_batches, not 'sum'"
    if problem.micro_batches * len(problem.units) > COPIES_AT_MOST:
        yield f"micro_batches: more than {COPIES_AT_MOST:,} units in all"
    phase = {unit.name: unit.phase for unit in problem.units}
    for tensor in problem.tensors:
        made = _PHASE_ORDER.get(phase.get(tensor.producer, ""), 0)
        for name in tensor.consumers:
            if _PHASE_ORDER.get(phase.get(name, ""), 2) < made:
                yield (
                    f"tensors.{tensor.name}: {phase[name]} unit {name!r} reads what a {phase[tensor.producer]}"
                    " unit makes, which micro-batches forbid"
                )


def arrival_findings(problem: Problem) -> Iterator[str]:
    """One sentence for everything that is wrong with the requests of a problem."""
    if problem.objective != "serving":
        if problem.arrivals:
            yield f"arrivals: only the objective serving has requests, not {problem.objective!r}"
        return
    if not problem.arrivals:
        yield "arrivals: the objective serving needs requests"
    if problem.memory_mode != "liveness":
        yield f"memory_mode: liveness where requests are served, not {problem.memory_mode!r}"
    name = problem.profile.replace("_", "-")
    if name in PROFILES.names() and PROFILES.load(name).model is not None:
        yield f"profile: one that simulates events where requests are served, not {problem.profile!r}"
    if problem.contiguous:
        yield "contiguous: a pipeline's rule, which says nothing about requests"
    count = 0
    for number, stream in enumerate(problem.arrivals):
        key = f"arrivals.{number}"
        if not stream.arrival_ns:
            yield f"{key}.arrival_ns: at least one request is needed"
        elif min(stream.arrival_ns) < 0 or max(stream.arrival_ns) >= 2**53:
            yield f"{key}.arrival_ns: must be ns from 0 to 2^53"
        elif list(stream.arrival_ns) != sorted(stream.arrival_ns):
            yield f"{key}.arrival_ns: must be in order"
        if not 0 < stream.target_ns < 2**53:
            yield f"{key}.target_ns: must be ns from 1 to 2^53, not {stream.target_ns}"
        count += len(stream.arrival_ns) * (len(stream.units) or len(problem.units))
    if count > COPIES_AT_MOST:
        yield f"arrivals: {count:,} units in all, more than {COPIES_AT_MOST:,}"
    yield from _network_findings(problem)


def _network_findings(problem: Problem) -> Iterator[str]:
    """Networks are apart: every unit belongs to one, and no tensor passes from one to another."""
    if len(problem.arrivals) < 2 and not any(stream.units for stream in problem.arrivals):
        return
    network: dict[str, int] = {}
    known = {unit.name for unit in problem.units}
    for number, stream in enumerate(problem.arrivals):
        for name in stream.units:
            if name not in known:
                yield f"arrivals.{number}.units: no unit is called {name!r}"
            elif name in network:
                yield f"arrivals.{number}.units: {name!r} belongs to a network already"
            network[name] = number
    missing = sorted(known - network.keys())
    if missing:
        yield f"arrivals: no network has the unit {missing[0]!r}"
    for tensor in problem.tensors:
        ends = {network.get(name, 0) for name in (tensor.producer, *tensor.consumers) if name}
        if len(ends) > 1:
            yield f"tensors.{tensor.name}: joins networks that are served apart"
