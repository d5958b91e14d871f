"""Probes that went through an older sandbox, one per test: the workspace, counted files, paths and an unseen clock."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.submissions.folders import PROBLEM, make, on
from tests.leaderboards.submissions.sandbox.cell import LIMITS, PRELUDE, attack, real_sandbox, said

import opmark
from opmark.core.errors import SubmissionError
from opmark.core.shipped import checkout
from opmark.leaderboards.scoring import placer_process
from opmark.leaderboards.scoring.placer_process import PlacerProcess, worker_environment
from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.runner import SubmissionRunner
from opmark.leaderboards.submissions.sandbox import runtime
from opmark.leaderboards.submissions.sandbox.bubblewrap import Bubblewrap
from opmark.leaderboards.submissions.sandbox.choice import Unprotected
from opmark.leaderboards.submissions.sandbox.runtime import INTERPRETER, View, environment
from opmark.leaderboards.submissions.sandbox.session import FINISHED, UNREADY, Heard, listen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A submission's folder that any account may enter."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    inside = tmp_path / "submission"
    inside.mkdir()
    return inside


@pytest.fixture(params=["root or not", "a user namespace"])
def account(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both ways to an account: as this user is, and as for a user who is not root."""
    real_sandbox()
    if request.param == "a user namespace":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return request.param


def run(folder: Path, script: str, sandbox: Bubblewrap, *command: str) -> Heard:
    (folder / "attack.py").write_text(PRELUDE + script)
    words = command or ("python3", "-S", "attack.py")
    with sandbox.confined(words, folder, limits=LIMITS, environment=environment(budget_s=1, seed=0)) as confined:
        return listen(confined, b"", seconds=60, output_bytes=LIMITS.output_bytes)


def test_a_workspace_below_a_shown_folder_is_empty(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, account: str
) -> None:
    """As after `pip install -e git+…`, which puts the workspace below Python's own folders."""
    secret = uuid.uuid4().hex
    shown = tmp_path / "prefix"
    space = shown / "src" / "space"
    for path in (shown / "other.txt", space / "leaderboards" / "t" / "hidden" / "references.json", space / "a.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(secret)
    monkeypatch.setattr(runtime, "_SYSTEM", ("/usr", str(shown)))
    walk = f"""
found = [os.path.join(top, name) for top, _, names in os.walk({str(shown)!r}) for name in names]
say(found=found, listed=tried(lambda: os.listdir({str(space)!r})),
    read=tried(lambda: open({str(space / "leaderboards/t/hidden/references.json")!r}).read()),
    written=tried(lambda: open({str(space / "new")!r}, "w").write("x")))
"""
    found = said(run(folder, walk, Bubblewrap().hiding(space)))
    assert found["found"] == [str(shown / "other.txt")]
    assert found["listed"] == []
    assert "Error" in str(found["read"])
    assert "Error" in str(found["written"])
    rooms = said(run(folder, walk.replace("'leaderboards", "'"), Bubblewrap().hiding(shown / "src")))
    assert rooms["found"] == [str(shown / "other.txt")]
    (shown / "leaderboards").mkdir()
    (shown / "leaderboards" / "solution.json").write_text(secret)
    whole = said(run(folder, walk, Bubblewrap().hiding(shown)))
    assert str(shown / "leaderboards" / "solution.json") not in whole["found"], "the rooms of a shown folder are empty"


def test_python_and_opmark_run_from_inside_a_hidden_workspace(folder: Path) -> None:
    root = checkout() or Path(opmark.__file__).parents[2]
    found = said(run(folder, "import opmark, numpy\nsay(fine=1)", Bubblewrap().hiding(root), INTERPRETER, "attack.py"))
    assert found == {"fine": 1}


def test_the_repository_that_opmark_runs_from_is_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "src" / "leaderboards").mkdir(parents=True)
    monkeypatch.setattr(runtime, "_SYSTEM", (str(tmp_path),))
    monkeypatch.setattr(runtime, "checkout", lambda: tmp_path / "src")
    assert [path for path in View().masked if path.startswith(str(tmp_path))] == [str(tmp_path / "src")]
    assert View().inside(tmp_path / "src" / "leaderboards") is None


def test_the_tracks_of_another_installation_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "site-packages"
    (packages / "opmark" / "content" / "leaderboards").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(packages))
    view = View()
    place = view.inside(packages / "opmark" / "content")
    assert place is not None
    assert place in view.masked


def test_files_without_content_are_counted(folder: Path, account: str) -> None:
    script = """
    def fill(make):
        number = 0
        try:
            while number < 100000:
                make(f"/tmp/{make.__name__}{number}")
                number += 1
        except OSError as error:
            return number, error.strerror
    def empty(path): os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    def folder(path): os.mkdir(path)
    def link(path): os.symlink("x" * 200, path)
    def hard(path): os.link("/tmp/one", path)
    def clean():
        for name in os.listdir("/tmp"):
            path = f"/tmp/{name}"
            os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    counts = {}
    for make in (empty, folder, link, hard):
        clean()
        open("/tmp/one", "w").close()
        counts[make.__name__] = fill(make)
    say(**counts)
    """
    found = said(attack(folder, script, limits=replace(LIMITS, temporary_files=500), seconds=60))
    assert {name: answer[1] for name, answer in found.items()} == dict.fromkeys(  # type: ignore[index]
        ("empty", "folder", "link", "hard"), "No space left on device"
    )
    assert all(answer[0] <= 500 for answer in found.values())  # type: ignore[index]


def test_every_process_inside_is_limited(folder: Path, account: str) -> None:
    """Under a user's own account, a submission can write to the memory of bubblewrap's first process."""
    script = """
limits = {pid: open(f"/proc/{pid}/limits").read() for pid in os.listdir("/proc") if pid.isdigit()}
status = {pid: open(f"/proc/{pid}/status").read() for pid in limits}
say(memory={pid: [line.split()[3:5] for line in text.splitlines() if line.startswith("Max address space")]
            for pid, text in limits.items()},
    status={pid: [line.split()[1] for line in text.splitlines() if line.startswith(("CapEff", "Seccomp:"))]
            for pid, text in status.items()})
"""
    found = said(run(folder, script, Bubblewrap()))
    most = str(LIMITS.memory_bytes)
    memory = found["memory"]
    assert isinstance(memory, dict)
    assert [row for row in memory.values() if row != [[most, most]]] == []
    rights = found["status"]
    assert isinstance(rights, dict)
    own = [row for pid, row in rights.items() if account == "a user namespace" or pid != "1"]
    assert [row for row in own if row != ["0" * 16, "2"]] == []
    assert len(memory) == len(rights) == 2


def test_no_path_of_this_machine_is_told(folder: Path, account: str) -> None:
    script = """
texts = {}
for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
    for name in ("cmdline", "environ", "mountinfo", "mounts", "mountstats", "maps", "comm"):
        texts[f"{pid}/{name}"] = tried(lambda: open(f"/proc/{pid}/{name}").read())
    for name in ("cwd", "exe", "root"):
        texts[f"{pid}/{name}"] = tried(lambda: os.readlink(f"/proc/{pid}/{name}"))
texts["here"] = " ".join([os.getcwd(), sys.executable, sys.prefix, *sys.path, *sys.argv, *os.environ.values()])
texts["links"] = " ".join(tried(lambda: os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd"))
texts["home"] = " ".join(os.listdir("/tmp"))
say(**texts)
"""
    found = said(run(folder, script, Bubblewrap(), INTERPRETER, "attack.py"))
    mounts = str(found["here"])
    assert "/opmark" in mounts or str(sys.base_prefix).startswith("/usr")
    told = [sys.prefix, str(Path(opmark.__file__).parents[1]), str(Path.home()), os.environ.get("USER", "nobody-else")]
    told += [] if sys.base_prefix.startswith("/usr") else [sys.base_prefix]
    overlays = "overlay" in str(found["1/mountinfo"]), "lowerdir" in str(found["1/mountinfo"])
    for secret in told:
        if secret in {"/", "root", "/usr"}:
            continue
        where = {name for name, text in found.items() if secret in str(text)}
        if not all(overlays):
            where -= {f"{pid}/mountinfo" for pid in range(1, 10)}  # no overlay here: a plain mount names its source
        assert where == set(), secret


def test_no_code_of_a_submission_runs_before_its_clock(tmp_path: Path) -> None:
    """Neither the placer's imports nor modules that take the place of others are free of charge."""
    code = "import time\nfor _ in range(30): time.sleep(0.1)\ndef place(problem, budget): return {}\n"
    slow = make(tmp_path / "slow", code)
    entry = SubmissionRunner(submission=load_submission(slow), sandbox=Unprotected())
    heard = entry.hear(PROBLEM, budget_s=0.1)
    assert (heard.end, heard.seconds < 2) == ("late", True)
    shadow = make(tmp_path / "shadow", f"def place(problem, budget): return {on('P1')}['device']")
    for name in ("json", "numpy", "opmark", "resource", "sitecustomize", "usercustomize"):
        (shadow / f"{name}.py").write_text("import time\ntime.sleep(30)\n")
    found = SubmissionRunner(submission=load_submission(shadow), sandbox=Unprotected()).hear(PROBLEM, budget_s=20)
    assert found.end != UNREADY
    assert found.seconds < 20


def test_processor_time_before_the_clock_cannot_be_saved_up(tmp_path: Path) -> None:
    code = """
import resource
def place(problem, budget):
    limits = resource.getrlimit(resource.RLIMIT_CPU)
    used = resource.getrusage(resource.RUSAGE_SELF)
    raise SystemExit(f"{limits[1] - used.ru_utime - used.ru_stime:.1f}")
"""
    entry = SubmissionRunner(submission=load_submission(make(tmp_path / "s", code)), sandbox=real_sandbox())
    heard = entry.hear(PROBLEM, budget_s=20)
    assert heard.end == FINISHED
    assert 0 < float(heard.errors.split()[-1]) <= 26, "23 seconds and the rounding, no longer a minute more"


def test_programs_with_a_path(tmp_path: Path) -> None:
    sandbox = real_sandbox()

    def entry(name: str, *command: str) -> SubmissionRunner:
        folder = make(tmp_path / name, command=list(command))
        return SubmissionRunner(submission=load_submission(folder), sandbox=sandbox)

    answer = f"echo '{on('P2')}'"
    for name, program in (("system", "/usr/bin/env"), ("link", "/bin/sh")):
        words = (program, "sh", "-c", answer) if name == "system" else (program, "-c", answer)
        found = entry(name, *words).attempt(PROBLEM, budget_s=5)
        assert set(found.solution.device.values()) == {"P2"}
    own = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    python = entry("python", own, "-c", f"print('''{on('P3')}''')").attempt(PROBLEM, budget_s=5)
    assert set(python.solution.device.values()) == {"P3"}
    hidden = tmp_path / "tool"
    hidden.write_text("#!/bin/sh\n")
    hidden.chmod(0o755)
    for program in (str(hidden), "/no/such/program", "/etc/passwd"):
        with pytest.raises(SubmissionError, match="is no program that a submission can start") as caught:
            entry(uuid.uuid4().hex, program).attempt(PROBLEM, budget_s=1)
        assert "name a program of the system" in str(caught.value.hint)


def test_placers_of_opmark_do_not_inherit_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = uuid.uuid4().hex
    monkeypatch.setenv("OPMARK_HIDDEN_SEED", seed)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", seed)
    assert seed not in worker_environment().values()
    assert worker_environment({"PATH": "/bin", "PYTHONPATH": "x", "OPMARK_ANY": "y"}).keys() >= {"PATH", "PYTHONPATH"}
    monkeypatch.setattr(placer_process, "subprocess", subprocess)  # not forked from one that has other variables
    with PlacerProcess() as process:
        process.attempt(PROBLEM, "heft", budget_s=5)
        assert process._process is not None
        inherited = Path(f"/proc/{process._process.pid}/environ").read_text()
    assert "PATH=" in inherited
    assert seed not in inherited


def test_a_track_inside_a_hidden_workspace_is_hidden_with_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scoring hides both; bubblewrap cannot lay anything over a folder of an empty one."""
    space = tmp_path / "prefix" / "space"
    track = space / "leaderboards" / "t"
    track.mkdir(parents=True)
    (track / "references.json").write_text("secret")
    monkeypatch.setattr(runtime, "_SYSTEM", ("/usr", str(tmp_path / "prefix")))
    assert View((track, space)).masked == View((space, track)).masked
    assert [path for path in View((track, space)).masked if path.startswith(str(tmp_path))] == [str(space)]
    found = said(run(folder, f"say(listed=os.listdir({str(space)!r}))", Bubblewrap().hiding(space, track)))
    assert found == {"listed": []}
