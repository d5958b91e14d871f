"""What can be wrong with the fields of a problem that name rules: objective, profile, splits, intervals, tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opmark.leaderboards.problem.cost_unit import UNITS
from opmark.leaderboards.problem.rules.arrivals import COPIES_AT_MOST

if TYPE_CHECKING:
    from opmark.leaderboards.problem.problem import Problem, Unit

# Factors of interference are kept in millionths.
FACTOR_AT_MOST = 64.0
PHASE_ORDER = {"forward": 0, "backward": 1, "update": 2}


def field_problems(problem: "Problem") -> Iterator[str]:
    """One sentence for each rule that a problem names wrongly."""
    from opmark.leaderboards.problem.rules.objective import OBJECTIVES
    from opmark.leaderboards.problem.rules.profile import PROFILES
    from opmark.leaderboards.problem.rules.synchronisation import SYNCHRONISATIONS

    if problem.objective not in OBJECTIVES.names():
        yield f"objective: one of {', '.join(OBJECTIVES.names())}, not {problem.objective!r}"
    for key, registry, name in (
        ("profile", PROFILES, problem.profile.replace("_", "-")),
        ("synchronisation", SYNCHRONISATIONS, problem.synchronisation),
    ):
        if name not in registry.names():
            yield f"{key}: one of {', '.join(registry.names())}, not {name!r}"
    known = ("$",) if problem.objective == "cost" else tuple(name for name in UNITS if name != "$")
    if problem.unit not in known:
        yield f"unit: one of {', '.join(known)}, not {problem.unit!r}"
    if not 0 <= problem.optimizer_state < 2**20:
        yield f"optimizer_state: must be from 0 to 2^20 times the weight's bytes, not {problem.optimizer_state}"
    if problem.micro_batches < 0:
        yield f"micro_batches: must not be negative, not {problem.micro_batches}"
    if problem.in_micro_batches:
        yield from _step_problems(problem)
    if problem.contiguous and len(problem.cluster.devices) > 62:
        yield f"contiguous: at most 62 devices, not {len(problem.cluster.devices)}"
    for type_name, table in problem.interference.items():
        for kind, row in table.items():
            for beside, factor in row.items():
                if not 1 <= factor <= FACTOR_AT_MOST:
                    yield (
                        f"interference.{type_name}.{kind}.{beside}: must be from 1 to {FACTOR_AT_MOST:g}, not {factor}"
                    )


def _step_problems(problem: "Problem") -> Iterator[str]:
    """Forward feeds backward feeds update, and nothing goes back: else micro-batches could not follow one another."""
    if problem.memory_mode == "sum":
        yield "memory_mode: liveness or stash where a step has micro_batches, not 'sum'"
    if problem.micro_batches * len(problem.units) > COPIES_AT_MOST:
        yield f"micro_batches: more than {COPIES_AT_MOST:,} units in all"
    phase = {unit.name: unit.phase for unit in problem.units}
    for tensor in problem.tensors:
        made = PHASE_ORDER.get(phase.get(tensor.producer, ""), 0)
        for name in tensor.consumers:
            if PHASE_ORDER.get(phase.get(name, ""), 2) < made:
                yield (
                    f"tensors.{tensor.name}: {phase[name]} unit {name!r} reads what a {phase[tensor.producer]}"
                    " unit makes, which micro-batches forbid"
                )


def unit_problems(unit: "Unit", key: str) -> Iterator[str]:
    """One sentence for each wrong split or interval of a unit."""
    for type_name, row in unit.split_ns.items():
        if type_name not in unit.exec_ns:
            yield f"{key}.split_ns.{type_name}: the unit has no exec_ns for that type"
        if any(not 0 <= value < 2**53 for value in row):
            yield f"{key}.split_ns.{type_name}: must be numbers of ns from 0 to 2^53"
    for type_name, (low, high) in unit.interval.items():
        if not 0 < low <= 1 <= high < 2**20:
            yield f"{key}.interval.{type_name}: must be two factors around 1, not {low} and {high}"
