"""Decide where the next looks of a run pay: every trial once, then those whose labels matter and are known least."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from opmark.bench.clock.protocol import MeasuringProtocol
from opmark.bench.suite.plan import Plan
from opmark.core.errors import NothingSelectedError
from opmark.core.kernels.folding import TrialLabels
from opmark.core.measurements.journal import Journal
from opmark.core.measurements.measurement import COARSE, DOUBTFUL, ERROR_OF_COARSE, LOW_QUALITY, USABLE
from opmark.core.measurements.records import HOT, NETWORK, ROTATED, KernelTrial, Trial

# Looks at one target before the run turns to another.
STINT = 24
_SHORTEST_STINT = 4
# Half of the weight is every trial's alone: a label that no network of the prior needs is part of the release too.
_OWN_WEIGHT = 0.5
# Networks are the ground truth. Errors of kernels average out within one, but those of its label do not: the networks
# of a target weigh as much as its kernels, and each at least so much.
_LEAST_NETWORK_WEIGHT = 4.0
# Sums over networks take about this share of the rotated labels, in variance.
_ROTATED_WEIGHT = 0.25
# A rotated label may be so many times less sure than a hot one: with what hours have in common, it is still coarse.
_ROTATED_ENOUGH = 3.0
# A doubtful label counts so many times: nobody can use it yet.
_DOUBTFUL_WEIGHT = 2.0
# In the median, a look at the hot label alone took this share of one at both, and one at the rotated label all of it.
_HOT_SHARE = 0.55
# What a look took on two cores of an EPYC: a time of its own, and the work so many times.
_LOOK_S = 0.06
_NETWORK_LOOK_S = 0.3
_CALLS = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLook:
    """One look at a trial, and the labels that it measures."""

    trial: Trial
    labels: tuple[str, ...]

    @property
    def share(self) -> float:
        """Its time as a share of that of a look at all labels of the trial."""
        return _HOT_SHARE if self.labels == (HOT,) else 1.0


def first_look(trial: Trial) -> PlannedLook:
    """The look that gives a trial all its labels."""
    return PlannedLook(trial=trial, labels=(HOT, ROTATED) if isinstance(trial, KernelTrial) else (NETWORK,))


def stints(trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    """All `trials` in stints on one target; networks come first, then the target with the largest share left.

    Few trials are split into at least four stints, so that they meet several processes.
    """
    left: dict[tuple[bool, str], list[Trial]] = {}
    for trial in trials:
        left.setdefault((isinstance(trial, KernelTrial), trial.target), []).append(trial)
    sizes = {key: len(found) for key, found in left.items()}
    while left:
        key = min(left, key=lambda key: (key[0], -len(left[key]) / sizes[key]))
        size = max(_SHORTEST_STINT, min(STINT, sizes[key] // 4))
        yield left[key][:size]
        del left[key][:size]
        if not left[key]:
            del left[key]


def weights(plan: Plan) -> dict[str, float]:
    """The weight of every trial's label: its kind's share of the networks' time, spread over the kind's kernels.

    The networks of a target share the weight of its kernels.
    """
    counts = Counter((trial.target, trial.kernel.kind) for trial in plan.kernels)
    totals = Counter(trial.target for trial in plan.kernels)
    networks = Counter(trial.target for trial in plan.networks)
    found = {
        trial.trial: max(_LEAST_NETWORK_WEIGHT, totals[trial.target] / networks[trial.target])
        for trial in plan.networks
    }
    for trial in plan.kernels:
        group = (trial.target, trial.kernel.kind)
        share = plan.shares.get(trial.target, {}).get(trial.kernel.kind, 0.0)
        found[trial.trial] = _OWN_WEIGHT + (1 - _OWN_WEIGHT) * share * totals[trial.target] / counts[group]
    return found


def is_settled(found: TrialLabels, protocol: MeasuringProtocol) -> bool:
    """Return True if more looks at the trial are not worth their time."""
    return not _owed(found, protocol)


def next_pass(
    trials: Sequence[Trial],
    labels: Mapping[str, TrialLabels],
    *,
    weight: Mapping[str, float],
    cost_s: Mapping[str, float],
    protocol: MeasuringProtocol,
    wanted: Collection[str] = (),
    pass_s: float,
) -> list[PlannedLook]:
    """The looks of the next pass, at most one per trial: those that remove most weighted variance per second,
    for `pass_s` seconds (decision 0073). `cost_s` has the seconds of a look at all labels of those trials that this run
    looked at.

    `wanted` trials are chosen even if they are settled. Empty if nothing is left to refine.
    """
    rated: list[tuple[float, float, PlannedLook]] = []
    for trial in trials:
        found = labels.get(trial.trial)
        if found is None:
            continue
        owed = _owed(found, protocol) or ((found_main(trial),) if trial.trial in wanted else ())
        if owed:
            look_s = cost_s.get(trial.trial) or _expected_s(trial, found)
            options = [(_gain(found, owed, look) / (look.share * look_s), look) for look in _options(trial, owed)]
            rate, look = max(options, key=lambda option: option[0])
            rated.append((rate * weight.get(trial.trial, 1.0), look.share * look_s, look))
    rated.sort(key=lambda item: (-item[0], item[2].trial.trial))
    chosen: list[PlannedLook] = []
    seconds = 0.0
    for _, look_s, look in rated:
        if seconds > pass_s:
            break
        seconds += look_s
        chosen.append(look)
    return chosen


def found_main(trial: Trial) -> str:
    """The main label of a trial."""
    return HOT if isinstance(trial, KernelTrial) else NETWORK


def again_plan(plan: Plan, journal: Journal, status: str) -> Plan:
    """The trials of `plan` with that status in `journal`; `low_quality` means coarse or doubtful.

    Raises `NothingSelectedError` if there are none.
    """
    wanted = {COARSE, DOUBTFUL, LOW_QUALITY} if status == LOW_QUALITY else {status}
    statuses = {key: found.status for key, found in journal.labels.items()}
    statuses |= {key: done.status for key, done in journal.done.items() if done.status not in USABLE}
    kernels = tuple(trial for trial in plan.kernels if statuses.get(trial.trial) in wanted)
    networks = tuple(trial for trial in plan.networks if statuses.get(trial.trial) in wanted)
    if not kernels and not networks:
        raise NothingSelectedError(f"nothing of this suite is {status}", where=str(journal.path))
    return replace(plan, kernels=kernels, networks=networks, judging=frozenset())


def _owed(found: TrialLabels, protocol: MeasuringProtocol) -> tuple[str, ...]:
    """The labels that are known worse than the protocol wants, and that another look can improve."""
    owed = []
    for which, label in found.labels.items():
        enough = protocol.enough * (_ROTATED_ENOUGH if which == ROTATED else 1.0)
        few = label.processes < protocol.processes
        if label.processes < protocol.most_looks and (few or label.reducible_error > enough):
            owed.append(which)
    return tuple(owed)


def _expected_s(trial: Trial, found: TrialLabels) -> float:
    """The expected length of a look at `trial`: a run that goes on has seen few of its trials itself."""
    own_s = _LOOK_S if isinstance(trial, KernelTrial) else _NETWORK_LOOK_S
    return own_s + _CALLS * found.main.latency_ns / 1e9


def _options(trial: Trial, owed: tuple[str, ...]) -> list[PlannedLook]:
    """The looks that may give the `owed` labels: a rotated one makes the kernel anyway, so the hot one comes along."""
    if ROTATED not in owed:
        return [PlannedLook(trial=trial, labels=owed)]
    both = PlannedLook(trial=trial, labels=(HOT, ROTATED))
    return [both, PlannedLook(trial=trial, labels=(HOT,))] if HOT in owed else [both]


def _gain(found: TrialLabels, owed: Sequence[str], look: PlannedLook) -> float:
    """The weighted variance of `owed` labels that one more process removes, if the machine is calm then."""
    gain = 0.0
    for which in owed:
        if which in look.labels:
            label = found.labels[which]
            weight = _ROTATED_WEIGHT if which == ROTATED else 1.0
            weight *= _DOUBTFUL_WEIGHT if label.reducible_error > ERROR_OF_COARSE else 1.0
            gain += weight * label.between**2 / (label.effective * (label.effective + 1))
    return gain
