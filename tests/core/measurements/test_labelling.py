"""Labels of simulated looks, whose truth is known."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmark.core.measurements.labelling import HOT_EFFECT, LASTING_EFFECT, labels_of
from opmark.core.measurements.looks import Look

TURNS = 12


def looks_at(
    log_ns: float, count: int, chance: np.random.Generator, *, lasting: tuple[float, ...] = (0.0,), pages: float = 0.01
) -> list[Look]:
    """Looks in `count` processes; look n is slower by `lasting[n]`, and both sentinels see that."""
    found = []
    for number in range(count):
        slower = lasting[number % len(lasting)]
        own = log_ns + slower + chance.normal(0, pages)
        ns = np.exp(own + chance.normal(0, 0.004, TURNS))
        state = np.full((TURNS, 2), slower) + chance.normal(0, 0.004, (TURNS, 2))
        found.append(Look(process=number, ns=ns.tolist(), state=state))
    return found


def test_without_looks_there_are_no_labels() -> None:
    assert labels_of({}) == {}
    assert labels_of({"a": []}) == {}


def test_one_steady_look_is_the_mean_of_its_calm_samples_and_not_surely_known() -> None:
    found = labels_of({"a": [Look(process=3, ns=[100.0, 101.0, 900.0], state=np.zeros((3, 2)))]})["a"]
    assert found.latency_ns == pytest.approx(math.sqrt(100.0 * 101.0), rel=1e-4)
    assert found.standard_error > 0.03, "another process may differ, by how much nothing here tells"
    assert (found.processes, found.samples, found.ratio) == (1, 3, pytest.approx(1.0, abs=0.01))


def test_a_slow_hour_leaves_the_label_at_the_calm_state() -> None:
    chance = np.random.default_rng(1)
    looks = {key: looks_at(10.0, 4, chance, lasting=(0.0, 0.0, 0.0, 0.08)) for key in range(40)}
    labels = labels_of(looks)
    errors = [math.log(label.latency_ns) - 10.0 for label in labels.values()]
    assert abs(float(np.median(errors))) < 0.004
    told = labels[0].told_ns
    assert max(told) / min(told) < 1.1, "samples of the slow look are told at the calm state too"


def test_a_few_restless_readings_are_trusted_less_at_the_usual_state() -> None:
    """Readings jump by 30 % within a look, the samples do not follow, and looks differ by 10 % for longer."""
    chance = np.random.default_rng(7)
    looks: dict[int, Look] = {}
    for key in range(60):
        lasting = chance.normal(0, 0.1)
        readings = lasting + chance.normal(0, 0.3, (4, 2))
        looks[key] = Look(
            process=key,
            ns=np.exp(10.0 + lasting + chance.normal(0, 0.004, 6)),
            state=np.repeat((readings[1:] + readings[:-1]) / 2, 2, axis=0),
            readings=4,
            unrest=tuple(readings.var(axis=0, ddof=1)),
        )

    def deviation(found: dict[int, Look]) -> float:
        labels = labels_of({key: [look] for key, look in found.items()}, calm=False)
        return float(np.std([math.log(label.latency_ns) for label in labels.values()]))

    trusting = {key: Look(process=look.process, ns=look.ns, state=look.state) for key, look in looks.items()}
    assert deviation(looks) < 0.8 * deviation(trusting)


def restless(log_ns: float, process: int, chance: np.random.Generator, busy: Sequence[bool]) -> Look:
    """A look in which a neighbour slows down by 40 % what is `busy`, and the compute sentinel by 25 %."""
    disturbed = np.array(busy, dtype=float)
    ns = np.exp(
        log_ns + disturbed * (math.log(1.4) + chance.normal(0, 0.1, len(busy))) + chance.normal(0, 0.004, len(busy))
    )
    state = np.stack([disturbed * math.log(1.25), np.zeros(len(busy))], axis=1) + chance.normal(
        0, 0.004, (len(busy), 2)
    )
    return Look(process=process, ns=ns.tolist(), state=state)


def test_a_quarter_of_calm_samples_tells_a_look() -> None:
    chance = np.random.default_rng(11)
    looks = {key: [restless(10.0, 0, chance, [turn % 4 > 0 for turn in range(TURNS)])] for key in range(80)}
    errors = [math.log(label.latency_ns) - 10.0 for label in labels_of(looks).values()]
    assert abs(float(np.median(errors))) < 0.005
    assert float(np.std(errors)) < 0.02


def test_a_calm_look_counts_more_than_many_restless_ones_and_is_known_better() -> None:
    chance = np.random.default_rng(12)
    looks = {
        key: [restless(10.0, process, chance, [process > 0 or key % 2 > 0] * TURNS) for process in range(3)]
        for key in range(80)
    }
    labels = labels_of(looks)
    errors = {key: math.log(label.latency_ns) - 10.0 for key, label in labels.items()}
    assert float(np.std([error for key, error in errors.items() if key % 2 == 0])) < 0.015
    met, never = (float(np.median([labels[key].standard_error for key in labels if key % 2 == odd])) for odd in (0, 1))
    assert never > 3 * met
    assert labels[0].effective > 0.5 > labels[1].effective


def test_what_no_sentinel_sees_makes_a_process_slower_and_never_faster() -> None:
    chance = np.random.default_rng(13)
    looks = {key: looks_at(10.0, 4, chance, pages=0.004) for key in range(60)}
    for found in looks.values():
        found[1] = Look(process=1, ns=[1.3 * ns for ns in found[1].ns], state=found[1].state)
    labels = labels_of(looks)
    assert abs(float(np.median([math.log(label.latency_ns) - 10.0 for label in labels.values()]))) < 0.005


def test_long_samples_are_told_by_the_fastest_because_no_reading_tells_their_state() -> None:
    """Readings beside a long sample are of other moments; only a clock that is slower all the time shows in all."""
    chance = np.random.default_rng(14)
    looks = {}
    for key in range(60):
        slower = 0.1 if key % 2 else 0.0  # a slow clock
        state = np.abs(chance.normal(0, 0.3, (6, 2))) + slower
        state[3] = slower
        ns = np.exp(10.0 + slower + np.abs(chance.normal(0, 0.2, 6)) * [1, 1, 0, 1, 1, 1])
        looks[key] = [Look(process=0, ns=ns.tolist(), state=state, brief=False)]
    errors = [math.log(label.latency_ns) - 10.0 for label in labels_of(looks, lasting=(1.0, 0.0)).values()]
    assert abs(float(np.median(errors))) < 0.02
    assert float(np.std(errors)) < 0.04


def test_labels_at_the_usual_state_are_means_over_all_processes() -> None:
    chance = np.random.default_rng(15)
    looks = {key: looks_at(10.0, 2, chance, pages=0.0) for key in range(20)}
    for found in looks.values():
        found[1] = Look(process=1, ns=[1.2 * ns for ns in found[1].ns], state=found[1].state)
    usual, calm = (labels_of(looks, calm=choice)[0].latency_ns for choice in (False, True))
    assert math.log(usual) == pytest.approx(10.0 + math.log(1.2) / 2, abs=0.01)
    assert math.log(calm) == pytest.approx(10.0, abs=0.01)


def test_nine_of_ten_labels_of_two_runs_agree_within_their_errors() -> None:
    chance = np.random.default_rng(2)
    held = total = 0
    for count in (2, 3, 6):
        runs = [
            labels_of(
                {key: looks_at(9.0, count, chance, pages=0.01 if key % 4 else 0.05) for key in range(200)},
                {key: str(key % 4) for key in range(200)},
            )
            for _ in range(2)
        ]
        for one, other in zip(*(run.values() for run in runs), strict=True):
            error = math.hypot(one.standard_error, other.standard_error)
            held += abs(math.log(one.latency_ns / other.latency_ns)) <= 1.645 * error
            total += 1
    assert 0.86 <= held / total <= 0.96


def test_repeats_of_some_kernels_tell_the_error_of_the_others() -> None:
    chance = np.random.default_rng(3)
    looks = {key: looks_at(9.0, 2 if key % 10 == 0 else 1, chance, pages=0.02) for key in range(200)}
    single = [label.standard_error for key, label in labels_of(looks).items() if key % 10]
    assert float(np.median(single)) == pytest.approx(0.02, rel=0.6)


def test_long_tails_widen_the_error_of_labels_from_one_process() -> None:
    chance = np.random.default_rng(5)

    def told(pages: Callable[[], float]) -> tuple[float, float]:
        # One kernel in three is measured twice; the error of the others comes from it.
        looks = {key: looks_at(9.0, 2 if key % 3 == 0 else 1, chance, pages=pages()) for key in range(600)}
        single = [label for key, label in labels_of(looks).items() if key % 3]
        held = [abs(math.log(label.latency_ns) - 9.0) <= 1.645 * label.standard_error for label in single]
        return float(np.mean(held)), float(np.median([label.standard_error for label in single]))

    held, error = told(lambda: 0.02 * abs(chance.standard_t(2)))
    assert 0.86 <= held <= 0.96
    assert error > told(lambda: 0.02)[1]


def test_one_of_few_differences_does_not_decide_for_all() -> None:
    chance = np.random.default_rng(6)
    looks = {key: looks_at(9.0, 2 if key < 6 else 1, chance) for key in range(40)}
    calm = labels_of(looks)[39].standard_error
    looks[0][1] = Look(process=1, ns=[3 * ns for ns in looks[0][1].ns], state=looks[0][1].state)
    assert labels_of(looks)[39].standard_error < 4 * calm


def test_one_unlucky_process_counts_little() -> None:
    chance = np.random.default_rng(4)
    looks = {key: looks_at(9.0, 5, chance, pages=0.005) for key in range(30)}
    looks[0] = looks_at(9.0, 5, chance, lasting=(0.0, 0.0, 0.0, 0.0, 0.0), pages=0.005)
    looks[0][2] = Look(process=2, ns=[ns * 1.4 for ns in looks[0][2].ns], state=looks[0][2].state)
    labels = labels_of(looks)
    assert math.log(labels[0].latency_ns) - 9.0 < 0.02
    assert 1 < labels[0].standard_error / labels[1].standard_error < 3


@settings(max_examples=30, deadline=None)
@given(factor=st.floats(min_value=1e-2, max_value=1e4), seed=st.integers(min_value=0, max_value=99))
def test_labels_scale_with_the_samples(factor: float, seed: int) -> None:
    looks = {key: looks_at(14.0, 2, np.random.default_rng([seed, key])) for key in range(6)}
    scaled = {
        key: [Look(process=look.process, ns=[factor * ns for ns in look.ns], state=look.state) for look in found]
        for key, found in looks.items()
    }
    one, other = labels_of(looks), labels_of(scaled)
    for key in looks:
        assert other[key].latency_ns == pytest.approx(factor * one[key].latency_ns, rel=1e-6)
        assert other[key].standard_error == pytest.approx(one[key].standard_error, rel=1e-6)


@pytest.mark.parametrize(("lasting", "slower"), [(LASTING_EFFECT, 1.0), (HOT_EFFECT, 1.1)])
def test_a_single_look_is_told_with_the_effect_that_is_known_before(lasting: tuple[float, ...], slower: float) -> None:
    state = np.full((4, 2), math.log(1.2))
    found = labels_of({"a": [Look(process=0, ns=[100.0] * 4, state=state)]}, lasting=lasting)["a"]
    assert found.latency_ns == pytest.approx(100.0 / 1.2**slower)
