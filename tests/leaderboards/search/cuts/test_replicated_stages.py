"""Pipelines of least bottleneck: the slowest stage decides, and memory limits what a device holds."""

import time
from dataclasses import replace

import numpy as np
from tests.leaderboards.examples import pipeline

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.ideals import every_ideal
from opmark.leaderboards.search.cuts.replicated_stages import replicated_stages


def stages(problem: Problem, size: int = 0) -> list[int] | None:
    blocks = blocks_of(problem)
    deadline = time.monotonic() + 60
    ideals = every_ideal(blocks, at_most=10_000, deadline=deadline)
    assert ideals is not None
    sizes = np.full(blocks.count, size, dtype=np.int64)
    found = replicated_stages(problem, blocks, ideals, sizes, deadline)
    return None if found is None else found.device.tolist()


def test_the_slowest_stage_is_as_fast_as_it_can_be() -> None:
    device = stages(pipeline([4, 3, 2, 5], devices=2))
    assert device is not None
    assert device[0] == device[1] != device[2] == device[3]  # 7 and 7


def test_a_pipeline_that_does_not_fit_has_no_stages() -> None:
    problem = pipeline([4, 3, 2, 5], devices=2)
    assert stages(problem, size=2**29) is not None  # two blocks fill a device of 1 GiB
    assert stages(problem, size=2**30 + 1) is None


def test_one_device_takes_everything() -> None:
    problem = pipeline([4, 3], devices=2)
    alone = replace(problem.cluster, devices=problem.cluster.devices[:1], links=())
    assert stages(replace(problem, cluster=alone)) == [0, 0]
