"""Measuring once more what a journal holds in a poor state, into the same journal: another trial of the same thing.

A trial is measured again because of its status, never because of its value, and no trial is taken back: a journal keeps
both, and a release shows the better one by quality alone, the other among its repeats.
"""

from collections.abc import Iterator
from dataclasses import replace

from opmark.bench.suite.plan import Plan
from opmark.core.canonical import content_id
from opmark.core.errors import NothingSelectedError
from opmark.core.journal import Journal
from opmark.core.measurement import FAILED, LOW_QUALITY
from opmark.core.records import KernelTrial, NetworkTrial

# What a calmer hour, or a machine with more memory, may settle. What is skipped has no such kernel.
AGAIN = (LOW_QUALITY, FAILED)


def again_plan(plan: Plan, journal: Journal, status: str) -> Plan:
    """The trials of `plan` of which `journal` has nothing better than `status`, each as its next trial.

    A trial that was begun and not finished is that next one: so a run that was stopped goes on, and one that came to
    its end is followed by another pass over what is still of that status. Raises `NothingSelectedError` without any.
    """
    models = {}
    kernels: list[KernelTrial] = []
    networks: list[NetworkTrial] = []
    for trial in plan.trials:
        number = _attempts(journal, trial.trial, status)
        if not number:
            continue
        other = replace(trial, trial=again_key(trial.trial, number))
        if isinstance(other, KernelTrial):
            kernels.append(other)
        else:
            networks.append(other)
            models[other.trial] = plan.models[trial.trial]
    if not kernels and not networks:
        raise NothingSelectedError(f"nothing of this suite is {status}", where=str(journal.path))
    return replace(plan, kernels=tuple(kernels), networks=tuple(networks), models=models, judging=frozenset())


def again_key(trial: str, number: int) -> str:
    """The key of the `number`th further trial of what `trial` is about; `trial` itself for 0."""
    return content_id([trial, "again", number]) if number else trial


def first_trials(journal: Journal) -> Iterator[KernelTrial | NetworkTrial]:
    """The trials of a journal without the further ones of anything."""
    again = set()
    for key in journal.trials:
        number = 1
        while (further := again_key(key, number)) in journal.trials:
            again.add(further)
            number += 1
    for key, trial in journal.trials.items():
        if key not in again:
            yield trial


def _attempts(journal: Journal, trial: str, status: str) -> int:
    """How many trials of it are done, where every one of them is of `status`; else 0."""
    number = 0
    while (done := journal.done.get(again_key(trial, number))) is not None:
        if done.status != status:
            return 0
        number += 1
    return number
