"""Simulated machines for `labels.py`: looks at kernels whose latencies and sensitivities are known."""

from typing import Any

import numpy as np

from opmark.core.measurements.looks import Look

TURNS = 12
# A neighbour on the same core comes and goes after so many milliseconds.
_SWITCHES = {"neighbour": 3.0, "restless": 0.375}
# The shares of the readings of both sentinels that are faster than the calm one.
CALM_SHARES = (0.05, 0.1)
MACHINES = ("quiet", "neighbour", "restless", "clock", "stolen", "unlucky")


def simulate(machine: str, count: int, *, kernels: int, seed: int) -> tuple[Any, dict[int, list[Look]], dict[int, str]]:
    """The logarithm of every kernel's true latency at the calm state, `count` looks at each, and their groups."""
    chance = np.random.default_rng([seed, MACHINES.index(machine), count])
    truth = chance.uniform(np.log(2e3), np.log(5e6), kernels)
    groups = {kernel: f"group-{kernel % 12}" for kernel in range(kernels)}
    share = np.array([kernel % 12 / 11 for kernel in range(kernels)])
    effect = np.stack([1 - 0.6 * share, 0.7 * share], axis=1) + chance.normal(0, 0.08, (kernels, 2))
    effect[:, 0] = np.maximum(effect[:, 0], 0.2)
    # Every sixth group depends on the pages of its process.
    pages = np.where(np.arange(kernels) % 6 == 0, 0.08, 0.006)
    looks: dict[int, list[Look]] = {kernel: [] for kernel in range(kernels)}
    # One kernel in twelve is visited once more, as in a run, so that the difference between processes is known.
    visits = [(number, kernel) for number in range(count) for kernel in chance.permutation(kernels)]
    visits += [(count, kernel) for kernel in chance.permutation(kernels)[: kernels // 12]]
    visits.sort(key=lambda visit: visit[0] if visit[0] < count else count * chance.random())
    hours = _hours(machine, len(visits), chance)
    for at, (number, kernel) in enumerate(visits):
        states, seen = _states(machine, hours[at], chance)
        log_ns = truth[kernel] + states @ effect[kernel] + chance.normal(0, 0.004, TURNS)
        log_ns = log_ns + chance.normal(0, pages[kernel])
        if machine == "unlucky" and number == 0 and kernel % 3 == 0:
            log_ns = log_ns + 0.15
        if machine == "stolen":
            log_ns = log_ns + _stalls(truth[kernel], chance)
        looks[kernel].append(Look(process=number, ns=np.exp(log_ns), state=seen))
    # Labels are told at the calm state, and so is the truth.
    seen = np.concatenate([look.state for found in looks.values() for look in found])
    calm = np.array([np.quantile(column, share) for column, share in zip(seen.T, CALM_SHARES, strict=True)])
    for found in looks.values():
        found[:] = [Look(process=look.process, ns=look.ns, state=look.state - calm) for look in found]
    return truth + effect @ calm, looks, groups


def _hours(machine: str, looks: int, chance: Any) -> Any:
    """The slow part of the state at each look, in logarithms."""
    at = np.arange(looks) / max(1, looks - 1)
    if machine == "clock":
        return np.where((at > 0.3) & (at < 0.55), 0.07, 0.0) + chance.normal(0, 0.002, looks)
    if machine in _SWITCHES:
        return 0.06 * np.sin(9 * at)
    return chance.normal(0, 0.002, looks)


def _states(machine: str, hour: float, chance: Any) -> tuple[Any, Any]:
    """The state during each turn's kernel, and as the sentinels beside it see it: compute and memory."""
    fast = np.zeros((TURNS, 2))
    before = np.zeros((TURNS, 2))
    if machine in _SWITCHES:
        # A turn takes 0.6 ms, a sentinel an eighth of it.
        busy = _telegraph(chance, TURNS * 8, 0.6 / 8 / _SWITCHES[machine])
        fast = busy.reshape(TURNS, 8)[:, 2:7].mean(axis=1)[:, None] * np.array([0.35, 0.12])
        before = (busy.reshape(TURNS, 8)[:, 0] + np.roll(busy.reshape(TURNS, 8)[:, 0], -1))[:, None] / 2
        before = before * np.array([0.35, 0.12])
    slow = np.array([hour, hour if machine == "clock" else 0.6 * hour])
    noise = chance.normal(0, 0.006, (TURNS, 2))
    if machine == "stolen":
        noise = noise + np.where(chance.random((TURNS, 2)) < 0.02, chance.exponential(1.0, (TURNS, 2)), 0.0)
    return fast + slow, before + slow + noise


def _telegraph(chance: Any, steps: int, rate: float) -> Any:
    """On and off, changing at every step with probability `rate`."""
    flips = chance.random(steps) < rate
    flips[0] = chance.random() < 0.5
    return np.cumsum(flips) % 2


def _stalls(log_ns: float, chance: Any) -> Any:
    """The hypervisor takes the processor for a millisecond or more, unseen by the guest's counters."""
    sample_ns = max(350_000.0, float(np.exp(log_ns)))
    hit = chance.random(TURNS) < min(0.6, 0.08 * sample_ns / 350_000.0)
    return np.where(hit, np.log1p(chance.exponential(2e6, TURNS) / sample_ns), 0.0)
