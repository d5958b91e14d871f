"""Replay measured training plans, and fit the replayer's constants on one cluster to judge it on the other.

The plans, layers and bandwidths are Sailor's (SOSP 2025), imported in `leaderboards/layers/sailor`. With --fit, the
three constants of `ReplayConstants` are fitted on the plans of one folder (least squares of the log error, a weak pull
to the middle of each constant's range) and judged on the plans of the other folders.

    python benchmarks/plans.py [--fit] [--plans FOLDER] [--json]
"""

import argparse
import itertools
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from opmark.leaderboards.plans.replay import DEFAULTS, PlanReplayer, Replay, ReplayConstants, load_replayer
from opmark.leaderboards.plans.training_plan import TrainingPlan, load_plan

LAYERS = Path(__file__).resolve().parents[1] / "leaderboards" / "layers" / "sailor"
MEDIAN, WORST = 0.10, 0.25
EXCHANGE_S = (0.0, 0.001, 0.002, 0.004)
EARLY = (0.0, 0.5, 1.0)
ITERATION_S = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06)
# The weight of a constant's distance from the middle of its range, beside squared log errors.
PULL = 1e-4


def replays(plans: Sequence[TrainingPlan], replayer: PlanReplayer, constants: ReplayConstants) -> list[Replay]:
    """Each plan under some constants."""
    return [PlanReplayer(replayer.profiles, replayer.bandwidths, constants).replay(plan) for plan in plans]


def fitted(plans: Sequence[TrainingPlan], replayer: PlanReplayer) -> ReplayConstants:
    """The constants with the least loss on `plans`; the time of an iteration is added, so it needs no replay."""
    best: tuple[float, ReplayConstants] | None = None
    for exchange, early in itertools.product(EXCHANGE_S, EARLY):
        constants = replace(DEFAULTS, exchange_s=exchange, early=early, iteration_s=0.0)
        trial = PlanReplayer(replayer.profiles, replayer.bandwidths, constants)
        found = [(trial.seconds(plan), plan.measured_s) for plan in plans]
        for iteration in ITERATION_S:
            errors = [math.log((seconds + iteration) / real) for seconds, real in found if real]
            loss = statistics.fmean(error**2 for error in errors)
            for value, values in ((exchange, EXCHANGE_S), (early, EARLY), (iteration, ITERATION_S)):
                loss += PULL * (value / values[-1] - 0.5) ** 2
            if best is None or loss < best[0]:
                best = (loss, replace(constants, iteration_s=iteration))
    assert best is not None
    return best[1]


def summary(title: str, found: Sequence[Replay], constants: ReplayConstants) -> dict[str, object]:
    """The errors of some plans."""
    errors = [abs(one.error) for one in found if one.error is not None]
    return {
        "title": title,
        "exchange_s": constants.exchange_s,
        "early": constants.early,
        "iteration_s": constants.iteration_s,
        "median": statistics.median(errors),
        "worst": max(errors),
        "plans": [asdict(one) for one in found],
    }


def rightly_ranked(plans: Sequence[TrainingPlan], found: Sequence[Replay]) -> tuple[int, int, int, int]:
    """Of the pairs of plans of one model: those whose cheaper and whose faster one is predicted rightly, of how many.

    The money of a plan is GPUs × seconds per sequence; where GPU types differ, it is left out. Returns (pairs ranked
    rightly by money, pairs by money, pairs ranked rightly by time, pairs by time).
    """
    right, pairs, right_time, pairs_time = 0, 0, 0, 0
    rows = [(plan, one, _gpus(plan)) for plan, one in zip(plans, found, strict=True) if one.measured_s]
    for (a, one, gpus), (b, other, gpus_beside) in itertools.combinations(rows, 2):
        if one.model != other.model:
            continue
        said, real = (
            [seconds / plan.global_sequences for plan, seconds in ((a, x), (b, y))]
            for x, y in ((one.predicted_s, other.predicted_s), (one.measured_s, other.measured_s))
        )
        pairs_time += 1
        right_time += (said[0] < said[1]) == (real[0] < real[1])
        if gpus.keys() == gpus_beside.keys() and len(gpus) == 1:
            counts = [sum(own.values()) for own in (gpus, gpus_beside)]
            pairs += 1
            right += (said[0] * counts[0] < said[1] * counts[1]) == (real[0] * counts[0] < real[1] * counts[1])
    return right, pairs, right_time, pairs_time


def _gpus(plan: TrainingPlan) -> Counter[str]:
    """The GPUs of a plan by type."""
    found: Counter[str] = Counter()
    for stage in plan.replicas:
        for one in stage:
            found[one.gpu] += one.tensor_parallel
    return found


def show(one: dict[str, object]) -> None:
    """Print the errors of some plans as a table."""
    constants = (
        f"exchange {one['exchange_s'] * 1e3:g} ms, early {one['early']:g}, iteration {one['iteration_s'] * 1e3:g} ms"  # type: ignore[operator]
    )
    print(f"\n{one['title']} ({constants})")
    for plan in one["plans"]:  # type: ignore[attr-defined]
        parts = "  ".join(f"{name[:-2]} {seconds:.3f}" for name, seconds in plan["parts"].items())
        memory = f"{plan['peak_bytes'] / 1e9:5.1f} / {(plan['measured_bytes'] or 0) / 1e9:5.1f} GB"
        print(
            f"  {Path(plan['plan']).stem:14}{plan['model']:12}{plan['measured_s']:10.4f} s{plan['predicted_s']:10.4f} s"
            f"{plan['error']:+8.1%}  {memory}  {parts}"
        )
    print(f"  median {one['median']:.1%} (≤ {MEDIAN:.0%}), worst {one['worst']:.1%} (≤ {WORST:.0%})")


def main() -> None:
    """Print the errors; the exit code is 1 if a target is missed with the shipped constants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=Path, default=LAYERS / "plans")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folders = {
        folder.name: [load_plan(path) for path in sorted(folder.glob("*.json"))]
        for folder in sorted(arguments.plans.iterdir())
    }
    replayer = load_replayer(LAYERS / "profiles", LAYERS / "networks", LAYERS)
    found = [
        summary(f"{name}, shipped constants", replays(plans, replayer, DEFAULTS), DEFAULTS)
        for name, plans in folders.items()
    ]
    missed = any(float(one["median"]) > MEDIAN or float(one["worst"]) > WORST for one in found)  # type: ignore[arg-type]
    for name, plans in folders.items() if arguments.fit else ():
        constants = fitted(plans, replayer)
        for other, judged in folders.items():
            title = f"{other}, fitted on {name}{' itself' if other == name else ''}"
            found.append(summary(title, replays(judged, replayer, constants), constants))
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        for one in found:
            show(one)
        for name, plans in folders.items():
            right, pairs, right_time, pairs_time = rightly_ranked(plans, replays(plans, replayer, DEFAULTS))
            print(f"\n{name}: pairs ranked rightly by money {right} of {pairs}, by time {right_time} of {pairs_time}")
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
