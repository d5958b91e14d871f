"""When units that share a device's slots would end, worked out from their starts alone."""

from collections.abc import Mapping, Sequence

from opmark.leaderboards.problem.interference import MILLION, factor_of
from opmark.leaderboards.problem.problem import Problem


def slowed_ends(
    problem: Problem, type_name: str, starts_ns: Sequence[tuple[int, str]], durations_ns: Mapping[str, int]
) -> dict[str, int]:
    """The end of each unit of one device, `starts_ns` being (start, unit); durations are those without neighbours.

    At every start and finish, what remains takes new / old factor times as long, rounded up.
    """
    kinds = {unit.name: unit.kind for unit in problem.units}
    found = {name: start for start, name in starts_ns if not durations_ns[name]}
    coming = sorted((start, name) for start, name in starts_ns if durations_ns[name])
    running: dict[str, tuple[int, int]] = {}
    while coming or running:
        now = min([end for end, _ in running.values()] + [start for start, _ in coming[:1]])
        for name in [name for name, (end, _) in running.items() if end == now]:
            found[name] = running.pop(name)[0]
        while coming and coming[0][0] == now:
            _, name = coming.pop(0)
            running[name] = (now + durations_ns[name], MILLION)
        for name, (end, factor) in list(running.items()):
            others = (kinds[other] for other in running if other != name)
            slowed = MILLION + sum(
                round(factor_of(problem, type_name, kinds[name], kind) * MILLION) - MILLION for kind in others
            )
            running[name] = (now - (now - end) * slowed // factor, slowed)
    return found
