"""Readings of sentinels are compared with those after work of the same length."""

import math
import random
from dataclasses import replace
from statistics import fmean

import pytest

from opmark.core.kernels.folding import look_of
from opmark.core.measurements.calm_readings import (
    after_like_work,
    calm_after,
    calm_and_fastest_readings,
    calm_beside,
    calm_readings,
    deviations_of_readings,
    is_calm,
)
from opmark.core.measurements.labelling import labels_of
from opmark.core.measurements.looks import Look
from opmark.core.measurements.records import HOT, NETWORK, ROTATED, Block

SHORT_NS, LONG_NS = 2e4, 1.5e6


def block(
    trial: str, ns: float, memory: tuple[float, ...], label: str = HOT, compute: float = 60.0, moment: int = 0
) -> Block:
    turns = len(memory) - 1
    return Block(
        trial=trial,
        label=label,
        process=0,
        round=moment,
        construction="single",
        copies=1,
        base_copies=0,
        calls=1,
        ns=(ns,) * turns,
        clean="1" * turns,
        sentinels={"compute": (compute,) * len(memory), "memory": memory},
    )


def carried(count: int = 400) -> list[Block]:
    """Blocks of a machine in one state, whose copy reads 190 after short work and 330 after long work."""
    short = [block(f"s{at}", SHORT_NS, (300.0, 190.0, 190.0), moment=at) for at in range(count)]
    long = [block(f"l{at}", LONG_NS, (300.0, 330.0, 330.0), label=NETWORK, moment=4 * at) for at in range(count // 4)]
    return [*short, *long]


def test_each_length_of_work_has_its_calm_reading() -> None:
    blocks = carried()
    calm = calm_readings(blocks)
    assert calm["memory"] == pytest.approx(190.0), "over all of them"
    first, later = calm_beside(calm, "memory", blocks[0])
    assert (first, later) == (pytest.approx(300, rel=0.02), pytest.approx(190, rel=0.02))
    assert calm_beside(calm, "memory", blocks[-1])[1] == pytest.approx(330, rel=0.06), "drawn towards all a little"
    assert calm_after(calm, "memory", LONG_NS) == calm_beside(calm, "memory", blocks[-1])[1]
    assert calm_after(calm, "memory", 1e3) == calm["memory"], "no work of that length was measured"
    assert calm_beside({"memory": 50.0}, "memory", blocks[0]) == (50.0, 50.0)
    with pytest.raises(KeyError):
        calm_beside({}, "memory", blocks[0])


def test_rotated_samples_stand_beside_colder_sentinels() -> None:
    cold = [block(f"r{at}", SHORT_NS, (300.0, 270.0, 270.0), label=ROTATED, moment=at) for at in range(400)]
    calm = calm_readings([*carried(), *cold])
    assert calm_beside(calm, "memory", cold[0])[1] == pytest.approx(270, rel=0.02)


def test_few_trials_do_not_decide_what_is_calm() -> None:
    slow = block("slow", LONG_NS, (330.0, 330.0, 330.0))
    calm = calm_readings([*(block(f"s{number}", SHORT_NS, (190.0,) * 3) for number in range(400)), slow])
    assert calm_beside(calm, "memory", slow)[1] < 205


def test_readings_without_a_block_count_too() -> None:
    assert calm_readings([], [("compute", 3.0), ("compute", 5.0), ("compute", 4.0)]) == {"compute": 4.0}


def test_what_the_caches_carry_over_is_no_state() -> None:
    """Long and short kernels are told at one state: the same machine gives them their own times."""
    chance = random.Random(3)
    blocks = []
    for one in carried():
        slower = chance.choice([1.0, 1.3])  # the state of this look
        readings = {name: tuple(ns * slower for ns in found) for name, found in one.sentinels.items()}
        blocks.append(replace(one, ns=tuple(ns * slower for ns in one.ns), sentinels=readings))
    calm = calm_readings(blocks)

    def told(of: dict[str, float]) -> float:
        looks: dict[str, list[Look]] = {one.trial: [look_of(one, of, None, 0.0)] for one in blocks}
        labels = labels_of(looks)
        short = [label.latency_ns / SHORT_NS for key, label in labels.items() if key.startswith("s")]
        long = [label.latency_ns / LONG_NS for key, label in labels.items() if key.startswith("l")]
        return math.exp(sum(map(math.log, long)) / len(long) - sum(map(math.log, short)) / len(short))

    overall = {name: calm[name] for name in ("compute", "memory")}
    assert told(overall) < 0.95, "one calm readings for all makes long work too fast"
    assert told(calm) == pytest.approx(1.0, abs=0.03)


def test_networks_are_told_at_the_state_of_the_kernels_although_they_ran_at_another_time() -> None:
    """The machine was fast while the run looked at networks, as at its beginning, and slow beside most kernels."""
    blocks = []
    for one in carried():
        early = one.round // 4 if one.label == NETWORK else one.round
        slower = 1.0 if early < 100 else 1.3
        readings = {name: tuple(ns * slower for ns in found) for name, found in one.sentinels.items()}
        blocks.append(replace(one, round=early, ns=tuple(ns * slower for ns in one.ns), sentinels=readings))
    calm = calm_readings(blocks)
    looks = {one.trial: [look_of(one, calm, None, 0.0)] for one in blocks}
    short, long = (
        math.exp(fmean(math.log(label.latency_ns) for key, label in labels_of(looks).items() if key[0] == kind))
        for kind in "sl"
    )
    assert short / SHORT_NS == pytest.approx(1.0, rel=0.02), "the speed of the fast quarter of the time"
    assert (long / LONG_NS) / (short / SHORT_NS) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(
    ("calm", "slowest", "usual_ns"),
    [(400, 110, 60.0), (100, 110, 60.0 * math.exp(0.2)), (100, 150, 60.0 * math.exp(0.2)), (100, 72, 65.5)],
    ids=["often calm", "seldom", "seldom, in a bad hour", "seldom, and never far from it"],
)
def test_a_machine_that_is_seldom_calm_is_told_at_its_usual_state(calm: int, slowest: int, usual_ns: float) -> None:
    """The usual state is the middle of the readings, but the same in every hour of a machine that others slow down."""
    blocks = [
        block(
            f"s{at}",
            SHORT_NS,
            (190.0,) * 3,
            compute=60.0 if at < calm else 60.0 + at % (slowest - 60),
            moment=at,
        )
        for at in range(800)
    ]
    readings = calm_readings(blocks)
    assert readings["compute"] == pytest.approx(usual_ns, rel=0.02)
    assert calm_beside(readings, "compute", blocks[0])[1] == pytest.approx(usual_ns, rel=0.02)
    assert readings["memory"] == 190.0
    assert is_calm(blocks, readings) == (calm == 400)
    assert calm_and_fastest_readings(blocks)[1]["compute"] == pytest.approx(60.0, rel=0.01), "calm, although seldom"


def test_journals_of_other_work_are_compared_like_with_like() -> None:
    blocks = carried()
    calm = calm_readings(blocks)
    networks = calm_readings([one for one in blocks if one.label == NETWORK])
    assert networks["memory"] == pytest.approx(300, rel=0.1), "a third of them stand before the first turn"
    assert after_like_work(networks, calm)["memory"] == pytest.approx(190, rel=0.06)
    assert after_like_work({"compute": 66.0}, calm) == {"compute": 66.0}


def test_a_restless_machine_is_told_by_the_readings_of_single_blocks() -> None:
    assert deviations_of_readings(carried()) == {"compute": 0.0, "memory": 0.0}
    assert deviations_of_readings([]) == {}
    restless = [block(f"n{number}", SHORT_NS, (300.0, 200.0, 220.0, 180.0, 200.0)) for number in range(5)]
    assert deviations_of_readings(restless)["memory"] == pytest.approx(1.4826 * math.log(1.1) / 2, rel=0.2)


def test_a_memory_whose_neighbours_come_for_minutes_is_told_by_the_readings_of_many_blocks() -> None:
    calm = [block(f"a{number}", SHORT_NS, (100.0,) * 7, moment=number) for number in range(40)]
    busy = [block(f"b{number}", SHORT_NS, (110.0,) * 7, moment=40 + number) for number in range(40)]
    assert deviations_of_readings(calm) == {"compute": 0.0, "memory": 0.0}
    found = deviations_of_readings([*calm, *busy])
    assert found == pytest.approx({"compute": 0.0, "memory": 1.4826 * math.log(1.1) / 2})


def test_the_faster_of_two_speeds_is_the_calm_one() -> None:
    found = calm_readings([block("slow", SHORT_NS, (900.0,) * 4), block("fast", SHORT_NS, (100.0,) * 4)])
    assert all(math.isfinite(value) for value in found.values())
    assert calm_after(found, "memory", SHORT_NS) == pytest.approx(100.0, rel=0.1)
