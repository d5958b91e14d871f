"""A table of public answers: it wins on stored instances, and neither on twins nor on networks that it cannot know."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.leaderboards.scoring.test_hidden import HIDDEN
from tests.leaderboards.scoring.test_scoring_jobs import track_in
from tests.leaderboards.scoring.test_selection import RECIPE, TRACK, workspace_in
from tests.leaderboards.submissions.folders import program
from tests.leaderboards.submissions.sandbox.cell import real_sandbox

from opmark.cli.main import cli
from opmark.core.canonical import plain
from opmark.core.checksums import checksum_fits
from opmark.core.reading import read_json
from opmark.leaderboards.scoring.hidden import fresh_problems
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.selection import make_track
from opmark.leaderboards.scoring.track import Track, load_track
from opmark.leaderboards.submissions.twins import twin_problems

FAMILIES = ("random-towers", "random-cells", "random-pyramids")
CANDIDATES = "".join(
    f'  - {{models: ["{family}#{number}"], cluster: pair, memory_share: {share}}}\n'
    for family in FAMILIES[:2]
    for number, share in ((1, 0.5), (2, 0.6))
)
# The stored answer of the same name, else that of the most similar graph by place in the order of units, else the
# fastest device. It loads nothing of OpMark, so that it starts at once.
TABLE = """
table = json.load(open("table.json"))
problem = json.loads(sys.stdin.readline())
devices, units = problem["cluster"]["devices"], problem["units"]
known = table.get(problem["name"])

def say(found, **more):
    print(json.dumps({"device": found, **more}), flush=True)

def seconds(device):
    return sum(unit["exec_ns"].get(device["type"], 1e18) for unit in units)

say(dict.fromkeys([unit["name"] for unit in units], min(devices, key=seconds)["name"]))
if known and len(known["device"]) == len(units):
    say(known["device"], **known["more"])
else:
    shape = [len(units), len(problem["tensors"]), len(devices)]
    best = min(table.values(), key=lambda row: sum(abs(a - b) for a, b in zip(row["shape"], shape)))
    found, shared = {}, {}
    for place, unit in enumerate(units):
        wanted = best["row"][place * len(best["row"]) // len(units)] % len(devices)
        found[unit["name"]] = devices[shared.setdefault(unit["colocation"] or unit["name"], wanted)]["name"]
    say(found)
"""
FASTEST = TABLE.partition("if known")[0].replace('json.load(open("table.json"))', "{}")


def table_of(track: Track) -> str:
    """The best stored answers of a track, as JSON."""
    standings, answers = track.standings(), track.solutions()
    rows = {}
    for problem in track.problems():
        costs = {name: found.cost for (name, of), found in standings.evaluations.items() if of == problem.name}
        answer = answers[min(costs, key=lambda name: costs[name])][problem.name]
        assert not isinstance(answer, str)
        names = [device.name for device in problem.cluster.devices]
        order = [problem.units[number].name for number in problem.arrays.topological.tolist()]
        rows[problem.name] = {
            "device": dict(answer.device),
            "more": {key: value for key in ("priority", "order") if (value := plain(answer)[key]) is not None},
            "row": [names.index(answer.device[name]) for name in order],
            "shape": [len(problem.units), len(problem.tensors), len(names)],
        }
    return json.dumps(rows)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a track that `opmark` has answered."""
    workspace = workspace_in(tmp_path_factory.mktemp("made") / "workspace")
    folder = workspace.leaderboards / "made"
    (folder / "track.yaml").write_text(f"{TRACK}budget_s: 0.4\n")
    head = RECIPE.partition("candidates:")[0]
    (folder / "recipe.yaml").write_text(f"{head}candidates:\n{CANDIDATES}{HIDDEN.replace('count: 4', 'count: 3')}")
    list(make_track(workspace, "made"))
    track = load_track(workspace.leaderboards, "made")
    score_track(track, ["opmark"])
    return workspace.root


@pytest.fixture
def track(made: Path, tmp_path: Path) -> Track:
    shutil.copytree(made, tmp_path / "workspace")
    return load_track(tmp_path / "workspace" / "leaderboards", "made")


def submitted(track: Track, folder: Path, tmp_path: Path) -> dict[str, object]:
    real_sandbox()
    words = ["--workspace", str(track.folder.parents[1]), "leaderboards", "submit", str(folder), "--track", "made"]
    found = CliRunner().invoke(cli, [*words, "--key", str(tmp_path / "key.pem"), "--json"])
    assert found.exit_code == 0, found.output
    placed: dict[str, object] = json.loads(found.stdout)["placed"][0]
    return placed


def test_a_table_of_public_answers_does_not_win(track: Track, tmp_path: Path) -> None:
    before = (track.folder / "standings.json").read_bytes()
    folder = program(tmp_path / "table", TABLE, name="table")
    (folder / "table.json").write_text(table_of(track))
    placed = submitted(track, folder, tmp_path)
    splits = placed["splits"]
    assert isinstance(splits, dict)
    assert splits["public"] > 0.9, "it knows the stored instances"
    assert splits["twins"] < 0.9 * splits["public"]
    assert splits["drop"] > 0.1
    rows = {row.name: row for row in track.standings().rows}
    assert rows["table"].score < rows["opmark"].score
    assert rows["table"].score == pytest.approx(placed["row"]["score"])  # type: ignore[index]
    shown = (
        CliRunner()
        .invoke(cli, ["--workspace", str(track.folder.parents[1]), "leaderboards", "standings", "--track", "made"])
        .stdout
    )
    assert {"public", "twins", "hidden", "drop"} <= set(shown.split())
    written = read_json(track.folder / "standings.json")["rows"]
    assert [row["name"] for row in written if "counted" in row] == ["table"], "rows of OpMark's placers did not change"
    others = [row for row in written if row["name"] != "table"]
    same = [{**row, "rank": 0} for row in json.loads(before)["rows"]]
    assert [{**row, "rank": 0} for row in others] == same


def test_the_draw_is_of_one_archive_and_can_be_repeated(track: Track, tmp_path: Path) -> None:
    folder = program(tmp_path / "honest", FASTEST, name="honest")
    first = submitted(track, folder, tmp_path)
    kept = track.folder / "submissions" / "honest"
    draw = read_json(kept / "draw.json")
    assert submitted(track, folder, tmp_path) == first, "the same archive has the same instances, and is not run again"
    assert read_json(kept / "draw.json") == draw
    # anybody can draw the instances again, and finds the stored references and answers
    twins = twin_problems(track.problems(), f"{draw['seed']}/twins")
    fresh = fresh_problems(track, f"{draw['seed']}/fresh")
    for half, problems in (("twins", twins), ("fresh", fresh)):
        assert {problem.id for problem in problems} == set(read_json(kept / half / "references.json")["references"])
    (folder / "main.py").write_text((folder / "main.py").read_text() + "# changed\n")
    submitted(track, folder, tmp_path)
    assert read_json(kept / "draw.json")["seed"] != draw["seed"]
    stored = {path.name for path in kept.iterdir()}
    assert {"owner.json", "receipt.json", "submission.tar", "draw.json", "counted.json", "twins", "fresh"} <= stored
    for name in ("owner.json", "receipt.json", "draw.json", "counted.json", "twins/references.json"):
        assert checksum_fits((kept / name).read_bytes()), name


def test_an_entry_that_is_being_scored_has_no_row(tmp_path: Path) -> None:
    track = track_in(tmp_path)
    score_track(track, ["heft"])
    answer = track.solutions()["heft"]["a"]
    assert not isinstance(answer, str)
    track.store("quick", "a", answer)
    (track.folder / "submissions" / "quick").mkdir(parents=True)
    assert "quick" in {row.name for row in track.standings().rows}, "as OpMark 0.1 left it"
    (track.folder / "submissions" / "quick" / "owner.json").write_text('{"schema": 1, "public_key": "00"}')
    assert "quick" not in {row.name for row in track.standings().rows}
