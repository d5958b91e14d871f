"""Submissions written for tests: commands and placers, honest and not."""

import json
from pathlib import Path

from tests.leaderboards.examples import heft_canonical

from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.runner import SubmissionRunner
from opmark.leaderboards.submissions.sandbox.choice import Unprotected
from opmark.leaderboards.submissions.sandbox.limits import Limits

PROBLEM = heft_canonical()


UNITS = [unit.name for unit in PROBLEM.units]


def on(device: str, **facts: object) -> str:
    return json.dumps({"device": dict.fromkeys(UNITS, device), **facts})


def make(folder: Path, code: str | None = None, **facts: object) -> Path:
    """A submission that runs `main.py` as a command, or a `placer.py` with `code`."""
    folder.mkdir(parents=True)
    manifest = {"schema": 1, "name": "mine", "title": "Mine", "authors": ["A"], "license": "MIT", **facts}
    (folder / "submission.yaml").write_text(json.dumps(manifest))
    if code is not None:
        (folder / ("main.py" if "command" in manifest else "placer.py")).write_text(code)
    return folder


def program(folder: Path, code: str, **facts: object) -> Path:
    return make(folder, f"import json, os, sys, time\n{code}\n", command=["python3", "-S", "main.py"], **facts)


def runner(folder: Path, limits: Limits | None = None) -> SubmissionRunner:
    return SubmissionRunner(submission=load_submission(folder), sandbox=Unprotected(), limits=limits or Limits())
