"""Compare estimators of labels: bias, spread and honesty of standard errors, by samples spent.

    python benchmarks/labels.py                                   # simulated machines
    python benchmarks/labels.py quick.jsonl full.jsonl            # journals: kernels that both hold
    python benchmarks/labels.py small.jsonl                       # one journal: one half of its looks against the other
    python benchmarks/labels.py --machine neighbour --looks 1,4,16
    python benchmarks/labels.py --readings full.jsonl             # sentinels, by the work before them (decision 0026)
    python benchmarks/labels.py --single network full.jsonl       # labels from one look against those from another one
    python benchmarks/labels.py --short 270 full.jsonl            # parts of a journal as runs of so many seconds

`labels_machines.py` simulates the machines. Every simulated kernel has a latency and a sensitivity to each state of the
machine that no estimator is told. A look is 12 turns in one process: both sentinels, then the kernel. `bias` is the
median error over kernels, `spread` its deviation between kernels, and `covered` the share of kernels whose latency
lies within 1.645 standard errors. For journals, the labels of the first are compared with those of the last.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from labels_machines import MACHINES, simulate

from opmark.core.kernels.folding import look_of
from opmark.core.measurements.calm_readings import calm_keys, is_calm
from opmark.core.measurements.estimate import median
from opmark.core.measurements.journal import Journal, calm_of, labels_of_trials, read_journal
from opmark.core.measurements.labelling import HOT_EFFECT, labels_of
from opmark.core.measurements.looks import Look
from opmark.core.measurements.own_work import beside_own_work
from opmark.core.measurements.records import HOT, LABELS, NETWORK, Block


def main() -> None:
    """Print one table per simulated machine, or one for two journals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journals", nargs="*", type=Path)
    parser.add_argument("--machine", choices=MACHINES, action="append")
    parser.add_argument("--looks", default="1,2,4,8", help="looks per kernel, for simulated machines")
    parser.add_argument("--kernels", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--readings", action="store_true", help="the sentinels' readings in journals, by length of work"
    )
    parser.add_argument("--single", choices=LABELS, help="this label from one look against that from another look")
    parser.add_argument("--short", type=float, help="labels of parts of a journal, this many seconds long")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    # What is told of each journal alone: the option, its rows, and their text.
    alone: tuple[tuple[Any, str, Callable[[Path], list[dict[str, Any]]], Callable[[Any], str]], ...] = (
        (chosen.short, "--short", lambda path: short_runs(read_journal(path), chosen.short), _short_text),
        (chosen.single, "--single", lambda path: single_looks(read_journal(path), chosen.single), _text),
        (chosen.readings, "--readings", readings, _readings_text),
    )
    for wanted, option, rows_of, text_of in alone:
        if wanted:
            if not chosen.journals:
                parser.error(f"{option} needs a journal")
            rows = [row for path in chosen.journals for row in rows_of(path)]
            print(json.dumps(rows, indent=1) if chosen.json else text_of(rows))
            return
    if chosen.journals:
        rows = replayed(chosen.journals)
    else:
        looks = [int(number) for number in chosen.looks.split(",")]
        machines = chosen.machine or MACHINES
        rows = [
            row for machine in machines for row in simulated(machine, looks, kernels=chosen.kernels, seed=chosen.seed)
        ]
    print(json.dumps(rows, indent=1) if chosen.json else _text(rows))


def simulated(machine: str, counts: Sequence[int], *, kernels: int, seed: int) -> list[dict[str, Any]]:
    """Errors of every estimator on a simulated machine, one row per estimator and number of looks."""
    rows = []
    for count in counts:
        truth, looks, groups = simulate(machine, count, kernels=kernels, seed=seed)
        for name, values, errors in _all_estimates(looks, groups):
            rows.append({"machine": machine, "looks": count, "estimator": name, **_figures(values - truth, errors)})
    return rows


def readings(path: Path) -> list[dict[str, Any]]:
    """The median reading of every sentinel in a journal, by target and by what ran before it."""
    journal = read_journal(path)
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for key, blocks in journal.blocks.items():
        for block in blocks:
            for name, (first, after) in calm_keys(block).items():
                read = block.sentinels[name]
                for moment, part in ((first, read[:1]), (after, read[1:])):
                    found[journal.trials[key].target, name, moment].extend(part)
    return [
        {
            "journal": path.stem,
            "target": target,
            "sentinel": name,
            "moment": moment,
            "n": len(ns),
            "median_ns": median(ns),
        }
        for (target, name, moment), ns in sorted(found.items())
        if ns
    ]


def _readings_text(rows: Sequence[dict[str, Any]]) -> str:
    return "\n".join(
        f"{row['target']:<22} {row['moment']:<34} {row['n']:>8,} readings  {row['median_ns'] / 1e3:8.1f} µs"
        for row in rows
    )


def replayed(journals: Sequence[Path]) -> list[dict[str, Any]]:
    """Labels of the last journal relative to those of the first, over the kernels of both."""
    found = [read_journal(path) for path in journals]
    calm = calm_of(found)
    at_calm = {
        target.name: is_calm(_blocks(found, target.name), calm.get(target.name, {})) for target in found[0].targets
    }
    first, last = (_looks(one, calm, at_calm) for one in (found[0], found[-1]))
    if len(found) == 1:
        first, last = _halves(first)
    if not first.keys() & last.keys():
        raise SystemExit(_nothing_to_compare(journals))
    rows = []
    for target in found[0].targets:
        common = sorted(key for key in first.keys() & last.keys() if found[0].trials[key].target == target.name)
        if common:
            groups = {key: found[0].trials[key].kernel.kind for key in common}
            sides = [{key: side[key] for key in common} for side in (first, last)]
            rows += _compared(target.name, sides, groups, calm=at_calm[target.name])
    return rows


def _blocks(journals: Sequence[Journal], target: str) -> Iterator[Block]:
    for journal in journals:
        for key, own in journal.blocks.items():
            if journal.trials[key].target == target:
                yield from own


def _compared(target: str, looks: Sequence[Any], groups: Mapping[str, str], *, calm: bool) -> list[dict[str, Any]]:
    """One row per estimator: the labels of the last looks over those of the first, both at the same kernels."""
    sides = [_all_estimates(side, groups, calm=calm) for side in looks]
    spent = sum(len(look.ns) for found in looks[-1].values() for look in found) / len(groups)
    rows = []
    for (name, before, before_errors), (_, after, after_errors) in zip(*sides, strict=True):
        errors = None if before_errors is None else np.hypot(before_errors, after_errors)
        row = {"machine": target, "looks": round(spent), "estimator": name}
        rows.append({**row, **_figures(after - before, errors)})
    return rows


def _nothing_to_compare(journals: Sequence[Path]) -> str:
    if len(journals) == 1:
        return (
            f"{journals[0]}: no kernel was looked at in four processes, so no half of its looks can judge the other; "
            "give a second journal, or measure on with the same command"
        )
    return f"{journals[0]} and {journals[-1]} hold no kernel that both have looked at"


def single_looks(journal: Journal, which: str) -> list[dict[str, Any]]:
    """By target: the label `which` from the first process of each trial, over that from the second, by sqrt(2)."""
    calm = calm_of([journal])
    visited = {key: sorted({block.process for block in own}) for key, own in journal.blocks.items()}
    sides = []
    for number in range(2):
        blocks = {
            key: [block for block in journal.blocks[key] if block.process == processes[number]]
            for key, processes in visited.items()
            if len(processes) > 1
        }
        sides.append(labels_of_trials(journal.trials, blocks, calm=calm, rounds={}, overhead_ns=journal.overhead_ns))
    rows = []
    for target in journal.targets:
        pairs = [
            [side[key].labels[which] for side in sides]
            for key in sides[0].keys() & sides[1].keys()
            if journal.trials[key].target == target.name and all(which in side[key].labels for side in sides)
        ]
        if pairs:
            errors = np.array([np.log(one.latency_ns / other.latency_ns) for one, other in pairs]) / np.sqrt(2)
            told = np.array([np.hypot(one.standard_error, other.standard_error) for one, other in pairs]) / np.sqrt(2)
            name = f"{target.name}, {len(pairs)} trials"
            rows.append({"machine": journal.path.stem, "looks": 1, "estimator": name, **_figures(errors, told)})
    return rows


def short_runs(journal: Journal, seconds: float) -> list[dict[str, Any]]:
    """By target: labels of parts of `journal` over those of all of it, as if each part were a run of its own.

    A part follows where the one before ends, and counts with at least 20 kernels and four networks. `apart` is how much
    slower networks are told than kernels.
    """
    times = [block.at_s for blocks in journal.blocks.values() for block in blocks if block.at_s is not None]
    if not times:
        raise SystemExit(f"{journal.path}: its looks have no time, so no part of it can be told; give a later journal")
    whole = journal.labels
    parts: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for begin in np.arange(min(times), max(times), seconds):
        blocks = {
            key: [block for block in own if block.at_s is not None and begin <= block.at_s < begin + seconds]
            for key, own in journal.blocks.items()
        }
        part = replace(journal, blocks={key: tuple(own) for key, own in blocks.items() if own})
        for target in journal.targets:
            errors: dict[str, list[float]] = {HOT: [], NETWORK: []}
            for key, found in part.labels.items():
                which = NETWORK if NETWORK in found.labels else HOT
                if journal.trials[key].target == target.name and which in whole[key].labels:
                    errors[which].append(np.log(found.main.latency_ns / whole[key].main.latency_ns))
            if len(errors[HOT]) >= 20 and len(errors[NETWORK]) >= 4:
                middle, networks = np.median(errors[HOT]), np.median(errors[NETWORK])
                spread = [1.4826 * float(np.median(np.abs(own - np.median(own)))) for own in errors.values()]
                parts[target.name].append((float(networks - middle), spread[0], spread[1]))
    return [
        {
            "journal": journal.path.stem,
            "target": name,
            "parts": len(found),
            "apart": float(np.mean([apart for apart, _, _ in found])),
            "kernels_spread": float(np.mean([kernels for _, kernels, _ in found])),
            "networks_spread": float(np.mean([networks for _, _, networks in found])),
        }
        for name, found in parts.items()
    ]


def _short_text(rows: Sequence[dict[str, Any]]) -> str:
    return "\n".join(
        f"{row['journal']:<10} {row['target']} {row['parts']:>2} parts: networks beside kernels {row['apart']:+.1%},"
        f" spread of kernels {row['kernels_spread']:5.1%}, of networks {row['networks_spread']:5.1%}"
        for row in rows
    )


def _halves(looks: Mapping[str, Sequence[Look]]) -> tuple[dict[str, list[Look]], dict[str, list[Look]]]:
    """The looks of every other process, and the rest, of kernels with looks in at least four processes."""
    sides: tuple[dict[str, list[Look]], dict[str, list[Look]]] = ({}, {})
    for key, every in looks.items():
        processes = sorted({look.process for look in every})
        if len(processes) >= 4:
            for number, side in enumerate(sides):
                side[key] = [look for look in every if look.process in processes[number::2]]
    return sides


def _looks(
    journal: Journal, calm: Mapping[str, Mapping[str, float]], at_calm: Mapping[str, bool]
) -> dict[str, list[Look]]:
    """The looks at the hot label of every kernel."""
    rounds = {item.round: item.ns for item in journal.sentinels}
    found = {}
    for key, blocks in journal.blocks.items():
        target = journal.trials[key].target
        looks = [
            look_of(
                block,
                calm.get(target, {}),
                rounds.get(block.round),
                journal.overhead_ns.get(target, 0.0),
                calm=at_calm.get(target, False),
            )
            for block in blocks
            if block.label == HOT
        ]
        if looks:
            found[key] = looks
    return found


def _all_estimates(looks: Any, groups: Any, *, calm: bool = True) -> list[tuple[str, Any, Any]]:
    """(name, logarithms of all labels, their standard errors or None)."""
    keys = list(looks)
    result = []
    for name, fraction in (("minimum", 0.0), ("p10", 0.1), ("p25", 0.25), ("median", 0.5), ("trimmed mean", None)):
        result += [
            (name + how, np.array([_plain(looks[key], fraction, how) for key in keys]), None)
            for how in ("", " / compute", " / state")
        ]
    if calm:
        looks, groups = beside_own_work(looks, groups)
    labels = labels_of(looks, groups, lasting=HOT_EFFECT, calm=calm)
    result.append(
        (
            "regression",
            np.log([labels[key].latency_ns for key in keys]),
            np.array([labels[key].standard_error for key in keys]),
        )
    )
    return result


def _plain(looks: Sequence[Look], fraction: float | None, how: str) -> float:
    """The logarithm of one quantile (None: trimmed mean) per process, then the median over processes."""
    weight = {"": (0.0, 0.0), " / compute": (1.0, 0.0), " / state": (0.6, 0.4)}[how]
    by_process: dict[int, list[float]] = {}
    for look in looks:
        by_process.setdefault(look.process, []).extend(np.log(look.ns) - np.asarray(look.state) @ np.array(weight))
    return float(np.median([_one(values, fraction) for values in by_process.values()]))


def _one(values: Sequence[float], fraction: float | None) -> float:
    if fraction is not None:
        return float(np.quantile(values, fraction))
    ordered = np.sort(values)
    cut = len(ordered) // 5
    return float(np.mean(ordered[cut : len(ordered) - cut]))


def _figures(errors: Any, standard_errors: Any) -> dict[str, Any]:
    bias = float(np.median(errors))
    return {
        "bias": bias,
        "spread": float(1.4826 * np.median(np.abs(errors - bias))),
        "p90": float(np.quantile(np.abs(errors - bias), 0.9)),
        "standard_error": None if standard_errors is None else float(np.median(standard_errors)),
        "covered": None if standard_errors is None else float(np.mean(np.abs(errors) <= 1.645 * standard_errors)),
    }


def _text(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        honest = "" if row["covered"] is None else f"  error {row['standard_error']:.1%}, covered {row['covered']:.0%}"
        lines.append(
            f"{row['machine']:<10} {row['looks']:>4} looks  {row['estimator']:<24} bias {row['bias']:+7.1%}  "
            f"spread {row['spread']:6.1%}  90 % within {row['p90']:6.1%}{honest}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
