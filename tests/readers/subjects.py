"""Every kind of file that OpMark reads: a small example of each, and the function that reads it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.datasets import sample
from tests.datasets.importing.test_importers import LUT
from tests.datasets.journals import write_journal
from tests.leaderboards import examples
from tests.leaderboards.making.test_cluster_plan import LINKS, PLAN
from tests.leaderboards.making.test_device_table import ANALYTIC, EFFICIENCY
from tests.leaderboards.making.test_importers import edge, graph_file, node
from tests.leaderboards.problem.test_problem import CLUSTER
from tests.models import onnx_models
from tests.predictors import law
from tests.readers.foreign_subjects import FOREIGN
from tests.readers.record_subjects import RECORDS
from tests.readers.subject import Subject, text_file

from opmark.bench.suite.suite import load_suite
from opmark.core.canonical import plain
from opmark.core.files import json_text, write_sealed
from opmark.core.measurements.journal import read_journal
from opmark.datasets.format.manifest import read as read_release
from opmark.datasets.importing.importer import IMPORTERS as TABLES
from opmark.datasets.release.building import build_from
from opmark.leaderboards.bounds.certificate import BoundCertificate, read_certificates, write_certificates
from opmark.leaderboards.making.cluster_plan import load_plan
from opmark.leaderboards.making.device_table import costs_of, load_table
from opmark.leaderboards.making.importer import IMPORTERS, ImportOptions
from opmark.leaderboards.making.model_problem import load_cluster
from opmark.leaderboards.making.recipe import load_recipe
from opmark.leaderboards.placers import heft
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.placement import Solution, load_solution, save_solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.answers import read_rows, row_of, row_text, solution_in, write_rows
from opmark.leaderboards.scoring.run_record import RunRecord, read_runs, write_runs
from opmark.leaderboards.scoring.splits import Counted, SplitScore, read_counted, stored_standings
from opmark.leaderboards.scoring.standings import rank_solutions
from opmark.leaderboards.scoring.track import load_track, read_references
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.trace import chrome_trace
from opmark.leaderboards.simulator.trace_check import check_trace_file
from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.ownership import owner_of
from opmark.leaderboards.submissions.protocol import answer_line, last_valid
from opmark.models import onnx_file
from opmark.models.graphs import encoding
from opmark.predictors.model.bundle import load as load_bundle
from opmark.predictors.model.manifest import read_manifest

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "datasets" / "amd-26-2-1-2vcpu-l3-32m" / "1.0.0"
BUNDLE = ROOT / "predictors" / "amd-26-2-1-2vcpu-l3-32m" / "1.0.0" / "onnxruntime-cpu-t1"
SUITE = """schema: 1
name: small
targets: [null-t1]
quality: quick
budget: 10m
kernels: 12
dtypes: [float32]
kinds: {gemm: {count: 3, space: {m: {low: 8, high: 64}}}, pool: {}}
"""
RECIPE = """schema: 1
seed: 3
judge_s: 0.2
judges: [heft, m-topo]
candidates:
  - {models: ["random-towers#1"], cluster: pair, memory_share: 0.5}
hidden: {count: 2, models: {random-cells: []}, clusters: [pair]}
"""
SUBMISSION = """schema: 1
name: mine
title: My placer
authors: [Somebody]
license: MIT
"""
TRACK = "schema: 1\ntitle: Latency\nversion: 1.0.0\nbudget_s: 5\n"


def _problem() -> Problem:
    return examples.heft_canonical()


def _solution() -> Solution:
    return heft.PLACER.place(_problem(), budget_s=1, seed=0)


def _saved_problem(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        save_problem(_problem(), folder / name)
        return folder / name

    return make


def _saved_solution(folder: Path) -> Path:
    save_solution(_solution(), folder / "s.json")
    return folder / "s.json"


def _journal(folder: Path) -> Path:
    return write_journal(folder / "j.jsonl", sample.kernels(2), networks=["tiny"])


def _old_journal(folder: Path) -> Path:
    path = _journal(folder)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({k: v for k, v in item.items() if k != "crc"}) + "\n" for item in records))
    return path


def _measured(path: Path) -> Any:
    found = read_journal(path)
    return found.measurements, found.networks, found.calm_ns, found.overhead_ns, found.environment, found.targets


def _release(folder: Path) -> Path:
    return build_from([sample.contents()], folder).path / "manifest.json"


def _published_release(folder: Path) -> Path:
    place = folder / RELEASE.parent.name / RELEASE.name
    place.mkdir(parents=True)
    shutil.copy(ROOT / "datasets" / "SHA256SUMS", folder)
    shutil.copy(RELEASE / "manifest.json", place)
    return place / "manifest.json"


def _bundle(member: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        shutil.copytree(BUNDLE, folder / "b", dirs_exist_ok=True)
        return folder / "b" / member

    return make


def _predicting(path: Path) -> Any:
    bundle = load_bundle(path.parent)
    return bundle.manifest, {kind: dict(item.texts) for kind, item in bundle.kinds.items() if kind == "softmax"}


def _graph(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        encoding.save(law.graph("one", law.kernels("softmax", 4)), folder / name)
        return folder / name

    return make


def _answers(folder: Path) -> Path:
    write_rows(folder / "heft.json.gz", {"canonical": row_of(_solution(), _problem())})
    return folder / "heft.json.gz"


def _plain_answers(folder: Path) -> Path:
    text = json.dumps({"schema": 1, "answers": {"canonical": row_of(_solution(), _problem())}})
    (folder / "heft.json").write_text(text)
    return folder / "heft.json"


def _answered(path: Path) -> Any:
    return {name: solution_in(row, _problem()) for name, row in read_rows(path).items()}


def _runs(folder: Path) -> Path:
    run = RunRecord(problem="p", code="c", budget_s=1.0, seed=0, planning_s=0.5, reason="none")
    write_runs(folder / "runs.json.gz", {"heft": {"canonical": run}})
    return folder / "runs.json.gz"


def _standings(folder: Path) -> Path:
    found = rank_solutions([_problem()], {"heft": {"canonical": _solution()}}, track="t")
    write_sealed(folder / "standings.json", row_text(found.file()))
    return folder / "standings.json"


def _certificates(folder: Path) -> Path:
    proved = BoundCertificate(problem="p", bound_ns=7, answer_ns=9, grid_ns=1, seconds=0.5, solver="by hand")
    write_certificates(folder, {"canonical": proved})
    return folder / "bounds.json"


def _sealed_file(name: str, content: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        write_sealed(folder / name, json_text({"schema": 1, **plain(content)}))
        return folder / name

    return make


def _counted(folder: Path) -> Path:
    part = SplitScore(score=0.5, low=0.25, high=0.75, instances=9)
    _sealed_file("t/submissions/mine/owner.json", {"public_key": "ab" * 32})(folder)
    content = Counted(sha256="ab" * 32, twins=part, unseen=part, source="fresh")
    return _sealed_file("t/submissions/mine/counted.json", content)(folder)


def _trace(folder: Path) -> Path:
    problem = _problem()
    path = folder / "trace.json"
    path.write_text(json.dumps(chrome_trace(problem, evaluate(problem, _solution()))))
    return path


def _published_problem(folder: Path) -> Path:
    return graph_file(folder, [node(1), node(2)], [edge(1, 2)])


def _line(folder: Path) -> Path:
    (folder / "answer.json").write_bytes(answer_line(_solution()))
    return folder / "answer.json"


def _onnx(folder: Path) -> Path:
    weights = [onnx_models.array("w", 4, 4)]
    built = onnx_models.model([onnx_models.node("MatMul", ["x", "w"], ["y"])], {"x": (2, 4)}, ["y"], weights)
    return onnx_models.saved(built, folder / "m.onnx")


def _table(path: Path) -> Any:
    table = load_table(path.parents[1], "made")
    return table, costs_of(table, path.parents[1])


SUBJECTS = (
    Subject("problem", _saved_problem("p.json"), load_problem, guarded=True),
    Subject("packed problem", _saved_problem("p.json.gz"), load_problem, guarded=True),
    Subject("solution", _saved_solution, lambda path: evaluate(_problem(), load_solution(path)), guarded=True),
    Subject("journal", _journal, _measured, guarded=True),
    Subject("old journal", _old_journal, _measured),
    Subject("release manifest", _release, lambda path: read_release(path.parent), guarded=True),
    Subject("published manifest", _published_release, lambda path: read_release(path.parent), guarded=True),
    Subject("bundle manifest", _bundle("manifest.json"), lambda path: read_manifest(path.parent), guarded=True),
    Subject("bundle member", _bundle("softmax.json.gz"), _predicting, guarded=True),
    Subject("cached graph", _graph("g.json"), encoding.load, guarded=True),
    Subject("packed graph", _graph("g.json.gz"), encoding.load, guarded=True),
    Subject("answers", _answers, _answered, guarded=True),
    Subject("plain answers", _plain_answers, _answered),
    Subject("runs", _runs, read_runs, guarded=True),
    Subject("standings", _standings, lambda path: stored_standings(path.parent), guarded=True),
    Subject("certificates", _certificates, lambda path: read_certificates(path.parent), guarded=True),
    Subject(
        "references",
        _sealed_file("references.json", {"references": {"p": ReferenceCosts(bound_ns=1, best_known_ns=2)}}),
        read_references,
        guarded=True,
    ),
    Subject(
        "owner", _sealed_file("owner.json", {"public_key": "ab" * 32}), lambda path: owner_of(path.parent), guarded=True
    ),
    Subject("counted splits", _counted, lambda path: read_counted(path.parents[2]), guarded=True),
    Subject("trace", _trace, lambda path: check_trace_file(_problem(), path)),
    Subject("answer of a submission", _line, lambda path: last_valid(_problem(), path.read_bytes(), complete=True)),
    Subject("suite", text_file("s.yaml", SUITE), load_suite),
    Subject("track", text_file("t/track.yaml", TRACK), lambda path: load_track(path.parents[1], "t")),
    Subject("recipe", text_file("recipe.yaml", RECIPE), lambda path: load_recipe(path.parent)),
    Subject("cluster", text_file("c.yaml", CLUSTER), load_cluster),
    Subject(
        "cluster plan",
        text_file(
            "clusters/pair.yaml",
            PLAN,
            ("clusters/links.yaml", LINKS),
            ("devices/made.yaml", ANALYTIC),
            ("devices/efficiency/made-up.yaml", EFFICIENCY),
        ),
        lambda path: load_plan(path.parents[1], "pair"),
    ),
    Subject(
        "device table",
        text_file("devices/made.yaml", ANALYTIC, ("devices/efficiency/made-up.yaml", EFFICIENCY)),
        _table,
    ),
    Subject(
        "submission",
        text_file("submission.yaml", SUBMISSION, ("placer.py", "def place(problem, budget): ...\n")),
        lambda path: load_submission(path.parent),
    ),
    Subject(
        "dnn-partitioning",
        _published_problem,
        lambda path: IMPORTERS.load("dnn-partitioning").read(path, ImportOptions()),
    ),
    Subject("nn-Meter table", text_file("lut.json", LUT), lambda path: [*TABLES.load("nn-meter-lut").entries(path)]),
    Subject("ONNX file", _onnx, lambda path: onnx_file.read(path, {}).model.SerializeToString()),
    *FOREIGN,
    *RECORDS,
)
BY_NAME = {subject.name: subject for subject in SUBJECTS}
