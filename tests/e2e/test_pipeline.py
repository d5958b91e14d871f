"""The whole pipeline on the null backend, from a suite to a board, a report and a site."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.predictors.short_training import short_training

from opmark.cli.main import cli
from opmark.core.files import sha256
from opmark.studies.quickstart.run import Quickstart, quickstart

SUITE = """
schema: 1
name: pipeline
targets: [null-a-t1, null-b-t1]
quality: quick
kinds:
  conv: {count: 24}
  elementwise: {count: 12}
  movement: {count: 12}
  pool: {count: 12}
  norm: {count: 12}
  gemm: {count: 12}
  reduce: {count: 12}
networks:
  training: [plain-tiny]
  held_out: [inception-tiny]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def found(folder: Path) -> Quickstart:
    suite = folder / "pipeline.yaml"
    suite.write_text(SUITE)
    with short_training():
        return quickstart(folder, suite, minutes=3, placed="inception-tiny")


def test_unseen_networks_are_predicted_on_both_targets(found: Quickstart) -> None:
    assert {(network.name, network.target) for network in found.networks} == {
        ("inception-tiny", "null-a-t1"),
        ("inception-tiny", "null-b-t1"),
    }
    # The null backend's law is smooth: a predictor that misses it by more than this is broken.
    assert found.document()["median_error"] < 0.3
    for network in found.networks:
        assert network.low_ns <= network.predicted_ns <= network.high_ns


def test_the_board_is_led_by_a_search_and_no_cost_is_below_the_bound(found: Quickstart) -> None:
    rows = found.contest.standings.rows
    costs = {row.name: row.results[0].cost for row in rows}
    bound = rows[0].results[0].bound
    assert bound is not None
    assert all(cost is not None and cost >= bound for cost in costs.values())
    assert costs["local-search"] <= min(costs["random"], costs["round-robin"], costs["best-single-device"])


def test_the_report_has_every_picture_and_needs_no_network(found: Quickstart) -> None:
    page = found.report.read_text()
    assert page.count("<svg") >= 4
    assert "inception-tiny" in page
    assert "local-search" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_a_second_run_measures_nothing_again(folder: Path, found: Quickstart) -> None:
    journal = next((folder / "bench" / "journals").glob("*.jsonl"))
    before = sha256(journal)
    again = quickstart(folder, folder / "pipeline.yaml", minutes=3, placed="inception-tiny")
    assert sha256(journal) == before
    assert len(list((folder / "datasets").glob("*/*"))) == 1
    assert [network.predicted_ns for network in again.networks] == [network.predicted_ns for network in found.networks]


def test_the_rooms_commands_work_on_what_it_left(folder: Path, found: Quickstart) -> None:
    problem = next((folder / "leaderboards").glob("*/problems/*.json"))

    def run(*arguments: str) -> dict[str, object]:
        result = CliRunner().invoke(cli, ["--workspace", str(folder), *arguments, "--json"])
        assert result.exit_code == 0, result.output
        parsed: dict[str, object] = json.loads(result.stdout)
        return parsed

    release = next((folder / "datasets").glob("*/*"))
    assert run("datasets", "validate", str(release))["valid"] is True
    predicted = run("predict", "inception-tiny", "--target", "null-a-t1")
    assert predicted["total_ns"] == pytest.approx(found.networks[0].predicted_ns)
    placed = run("leaderboards", "place", str(problem), "--placer", "heft", "--budget", "2")
    assert placed["valid"] is True
    assert placed["cost"] == found.contest.cost_ns("heft")


def test_its_board_becomes_a_site(folder: Path, found: Quickstart, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["--workspace", str(folder), "leaderboards", "site", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert found.contest.standings.rows[0].name in (tmp_path / "quickstart" / "index.html").read_text()
