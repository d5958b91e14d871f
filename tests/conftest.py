"""Options of the tests of readers, the order of files, and the search, compiled once while other tests run."""

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Threads of two processes on two cores wait for one another busily, and take up to five times as long.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Freed memory stays with its process. Clearing new pages for a matrix takes longer than most arithmetic on it.
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**26), "MALLOC_TRIM_THRESHOLD_": str(2**28)}
# Workers of a local Dask cluster, and other processes of tests, are forked from one that has imported all they need.
FORKED = {"DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "forkserver"}
IMPORTED = (
    "distributed",
    "opmark.core.parallel.dask_map",
    "opmark.bench.run.measuring_host",
    "opmark.leaderboards.scoring.scoring_jobs",
    "tests.leaderboards.submissions.test_ownership",
    "opmark.predictors.judging.scores",
    "tests.leaderboards.loaded_search",
)
# A collection of garbage for every so many new objects: five thousand tests are a large heap to look through.
COLLECTED_EVERY = 50_000
# Files that take longest come first, so that all processes end at about the same time; those in front compile nothing.
LONGEST = (
    "predictors/judging/test_published_tables.py",
    "models/test_resolve.py",
    "content/test_datasets.py",
    "bench/run/test_runner.py",
    "bench/run/test_cluster_run.py",
    "models/zoo/test_transformers.py",
    "predictors/model/test_training.py",
    "models/programs/test_builder.py",
    "predictors/transfer/test_adapted_bundle.py",
    "predictors/judging/test_scores.py",
    "cli/commands/predictors/test_bundles.py",
    "models/capture/test_training_counts.py",
    "studies/active_sampling/test_run.py",
    "house/test_docs.py",
    "content/test_schemas.py",
    "contracts/test_placers.py",
    "leaderboards/submissions/test_counting.py",
    "leaderboards/scoring/test_track.py",
    "leaderboards/serving/test_server.py",
    "content/test_tracks.py",
    "e2e/test_pipeline.py",
    "leaderboards/submissions/test_ownership.py",
    "leaderboards/placers/test_searching_placers.py",
    "readers/test_fuzz.py",
    "leaderboards/bounds/test_relaxations.py",
    "leaderboards/serving/test_scoring_loop.py",
    "leaderboards/submissions/test_submit.py",
    "leaderboards/scoring/test_scoring_jobs.py",
    "leaderboards/bounds/test_interval_bound.py",
    "leaderboards/scoring/test_placer_process.py",
    "leaderboards/serving/test_server_in_browser.py",
    "leaderboards/provisioning/drawers/test_drawn_pools.py",
    "leaderboards/provisioning/test_job.py",
    "leaderboards/scoring/test_first_answer.py",
    "test_interface.py",
)
# Folders with tests that place or simulate.
COMPILED = frozenset({"search", "placers", "simulator", "bounds", "scoring", "contracts", "e2e", "readers"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a nightly run mutate files for longer."""
    group = parser.getgroup("readers")
    group.addoption("--fuzz-seconds", type=float, default=0.0, help="Mutate each kind of file for this long.")
    group.addoption("--fuzz-seed", type=int, default=0, help="The seed of the mutations.")
    group.addoption("--flips", type=int, default=0, help="Flip this many bits of each kind of file.")


def pytest_configure() -> None:
    """Settle the threads before anything that has some is imported. All that is imported now stays: no garbage.

    Bytecode is kept, whatever the environment says: hundreds of processes would each compile the same sources. Drawn
    examples may take their time, as in a CI run: on a busy machine a slow draw is no failure.
    """
    settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")
    for name, value in {**THREADS, **MEMORY, **FORKED}.items():
        os.environ.setdefault(name, value)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    rank = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0].partition("tests/")[2], len(rank)))


@pytest.fixture(scope="session", autouse=True)
def forked_processes() -> None:
    """Runs in this process measure in workers, and score placers in processes, that take no time to start."""
    from tests.bench.forked_workers import fork_workers
    from tests.leaderboards.forked_placers import fork_placers

    fork_workers()
    fork_placers()


@pytest.fixture(scope="session")
def forked_cluster() -> None:
    """What the fork server of this process forks finds everything imported. Dask chooses imports at its first look."""
    from distributed.utils import get_mp_context

    get_mp_context().set_forkserver_preload(list(IMPORTED))


def places(item: pytest.Item) -> bool:
    """True for a test that needs the compiled search."""
    return not COMPILED.isdisjoint(item.path.parts)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what is imported out of all searches for garbage, and begin to compile, where a test needs it."""
    gc.freeze()
    gc.set_threshold(COLLECTED_EVERY, 10, 10)
    gc.enable()
    if not session.config.option.collectonly and any(map(places, session.items)):
        from opmark.leaderboards.search.compilation import compile_in_background, is_compiled

        if not is_compiled():
            compile_in_background()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Wait until the search is compiled before a test that needs it, so that its time limit does not pay for it."""
    if places(item):
        from opmark.leaderboards.search.compilation import compile_once

        compile_once()
    return (yield)
