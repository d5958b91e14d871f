from pathlib import Path

import pytest

from opmark.core.errors import ContentError, UnknownNameError, UsageError
from opmark.leaderboards.plans.bandwidths import load_bandwidths
from opmark.leaderboards.provisioning.answer import answer_of
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.exploration import Exploration
from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.goal import Goal
from opmark.leaderboards.provisioning.job import job_of
from opmark.leaderboards.provisioning.layers_job import has_layers, layers_job
from opmark.leaderboards.search.placer import PLACERS

LEADERBOARDS = Path("leaderboards")
NETWORKS = LEADERBOARDS / "layers" / "sailor" / "networks"


@pytest.fixture(scope="module")
def one_zone():
    return load_catalogue(LEADERBOARDS, "training-layers")


def test_a_step_has_the_measured_times_of_every_type(one_zone):
    job = layers_job("opt-350@training", one_zone, LEADERBOARDS, sequences=16)
    assert has_layers(one_zone)
    assert job.whole.micro_batches == 8
    assert job.batch == 16
    assert set(job.whole.units[0].exec_ns) == {"gh200", "a100", "v100"}
    total = {kind: sum(unit.exec_ns[kind] for unit in job.whole.units) for kind in one_zone.types}
    assert total["gh200"] < total["a100"] < total["v100"]


def test_a_model_that_fits_on_no_single_device_needs_several(one_zone):
    job = layers_job("gpt-neo-2.7@training", one_zone, LEADERBOARDS, sequences=8)
    weights = sum(job.whole.held_bytes.values())
    memory = {kind: table.memory_bytes for kind, table in one_zone.tables.items()}
    assert memory["a100"] < weights < 2 * memory["a100"]
    exploration = Exploration(job, Goal(), devices_at_most=2)
    exploration.run(5)
    sizes = {answer.fleet for answer in exploration.answers.values()}
    assert Fleet.of({"a100": 1}) not in sizes
    assert Fleet.of({"v100": 2}) not in sizes


def test_quick_looks_spread_the_memory_of_a_step(one_zone):
    job = layers_job("gpt-neo-2.7@training", one_zone.only(["gh200"]), LEADERBOARDS, sequences=16)
    exploration = Exploration(job, Goal(), devices_at_most=2)
    exploration.look_at_all(lambda: False)
    assert set(exploration.answers) == {Fleet.of({"gh200": 2})}


def test_a_prediction_includes_every_micro_batch(one_zone):
    job = layers_job("opt-350@training", one_zone, LEADERBOARDS, sequences=8)
    fleet = Fleet.of({"a100": 1})
    problem = job.problem(fleet, objective="latency")
    answer = answer_of(job, fleet, PLACERS.load("heft").place(problem, budget_s=5, seed=0), objective="latency")
    per_unit = [(unit.exec_ns["a100"], job.runs_of(unit)) for unit in job.whole.units]
    assert answer.latency_ns == pytest.approx(sum(ns * runs for ns, runs in per_unit), rel=1e-3)


def test_links_follow_the_measured_bandwidths(one_zone):
    cluster = one_zone.cluster(Fleet.of({"a100": 2, "v100": 1}))
    links = {(link.source, link.destination): link for link in cluster.links}
    measured = load_bandwidths(NETWORKS)
    across = measured.between(("us-central1-a", "A100-40", 1), ("us-central1-a", "V100-16", 1))
    for size, ns in links["a100-0", "v100-0"].points:
        assert ns == pytest.approx(1e9 * across.seconds(size), abs=1)
    # the larger a message, the more bytes per second
    rates = [size / ns for size, ns in links["a100-0", "v100-0"].points]
    assert rates[0] < 0.6 * rates[-1]
    assert links["a100-0", "a100-1"].port == ""
    assert links["a100-0", "a100-1"].points[-1][1] < links["a100-0", "v100-0"].points[-1][1]


def test_zones_far_apart_have_slower_links():
    catalogue = load_catalogue(LEADERBOARDS, "training-zones")
    cluster = catalogue.cluster(Fleet.of({"v100": 2, "v100-west": 1}))
    large = {(link.source, link.destination): link.points[-1][1] for link in cluster.links}
    assert large["v100-0", "v100-west-0"] > 2 * large["v100-0", "v100-1"]


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        ("opt-350", {}, UsageError, "measured in training"),
        ("opt-351@training", {}, UnknownNameError, "opt-351"),
        ("opt-350@training", {"sequences": 9}, UsageError, "cannot be cut"),
        ("opt-350@training", {"sequences": 4096}, ContentError, "can train"),
    ],
)
def test_a_wrong_job_is_refused(one_zone, model, options, error, message):
    with pytest.raises(error) as raised:
        layers_job(model, one_zone, LEADERBOARDS, **options)
    assert message in raised.value.message


def test_a_network_of_kernels_finds_no_costs_in_layers(one_zone):
    from opmark.core.workspace import Workspace
    from opmark.leaderboards.making.instances import Sources

    with pytest.raises(ContentError, match="costs of whole layers"):
        job_of("random-cells#1", one_zone, Sources(workspace=Workspace(Path())))
