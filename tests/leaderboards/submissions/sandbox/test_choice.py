"""The choice of a sandbox, its description, and the refusal where there is none."""

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.leaderboards.submissions.sandbox.cell import real_sandbox

from opmark.core.errors import ExitCode, MissingExtraError, UnavailableError, UsageError
from opmark.leaderboards.submissions.sandbox import bubblewrap
from opmark.leaderboards.submissions.sandbox.choice import Unprotected, sandbox
from opmark.leaderboards.submissions.sandbox.limits import Limits, pinned, tool
from opmark.leaderboards.submissions.sandbox.runtime import environment
from opmark.leaderboards.submissions.sandbox.session import FINISHED, UNREADY, listen
from opmark.leaderboards.submissions.sandbox.syscalls import seccomp_filter


def test_without_bubblewrap_a_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(UnavailableError, match="bubblewrap is not installed") as caught:
        sandbox()
    assert caught.value.exit_code == ExitCode.UNAVAILABLE
    assert "--sandbox none --i-trust-this" in str(caught.value.hint)


def test_a_bubblewrap_that_may_not_work_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "/usr/bin/bwrap")
    monkeypatch.setattr(bubblewrap, "_refusal", lambda _: "No permissions to create new namespace")
    with pytest.raises(UnavailableError, match="cannot make a sandbox here: No permissions"):
        sandbox()


def test_without_the_filter_a_run_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    real_sandbox()
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(MissingExtraError, match="needs pyseccomp") as caught:
        sandbox()
    assert caught.value.exit_code == ExitCode.UNAVAILABLE
    assert (caught.value.hint or "").startswith("pip install 'opmark[sandbox]'; to run only")


def test_no_sandbox_is_chosen_twice() -> None:
    with pytest.raises(UsageError, match="read and change everything"):
        sandbox("none")
    chosen = sandbox("none", trusted=True)
    assert isinstance(chosen, Unprotected)
    assert chosen.layers(Limits())[0] == "no sandbox: the run was trusted"


def test_trusted_runs_have_limits_and_a_folder_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(
        "import os, resource\nprint(os.getcwd(), resource.getrlimit(resource.RLIMIT_AS)[0])"
    )
    limits = Limits(memory_bytes=2**30)
    with Unprotected().confined(
        ("python3", "/submission/run.py"), tmp_path, limits=limits, environment=environment(budget_s=1, seed=0)
    ) as confined:
        scratch = Path(confined.environment["HOME"])
        assert scratch.is_dir()
        heard = listen(confined, b"", seconds=20, output_bytes=1000)
    assert (heard.end, heard.output.decode().split()) == (FINISHED, [str(tmp_path), str(2**30)])
    assert not scratch.exists()


def test_a_program_that_is_not_ready_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("raise SystemExit('no such module')")
    with Unprotected().confined(
        ("python3", "/submission/run.py"), tmp_path, limits=Limits(), environment=environment(budget_s=1, seed=0)
    ) as confined:
        heard = listen(confined, b"", seconds=20, output_bytes=1000, ready_within_s=20)
    assert (heard.end, heard.code, heard.errors) == (UNREADY, 1, "no such module\n")


def test_the_clock_begins_when_the_program_is_ready(tmp_path: Path) -> None:
    script = "import time; time.sleep(1.2); print('{\"ready\": true}', flush=True); print(input())"
    (tmp_path / "run.py").write_text(script)
    with Unprotected().confined(
        ("python3", "/submission/run.py"), tmp_path, limits=Limits(), environment=environment(budget_s=1, seed=0)
    ) as confined:
        heard = listen(confined, b"question\n", seconds=20, output_bytes=1000, ready_within_s=20)
    assert (heard.end, heard.output) == (FINISHED, b"question\n")


def test_the_filter_is_whole_instructions() -> None:
    program = seccomp_filter()
    assert len(program) % struct.calcsize("HBBI") == 0
    assert len(program) > 40 * 8


def test_one_processor_and_tools_that_are_missing() -> None:
    assert pinned(None) == ()
    command = [*pinned(0), "python3", "-c", "import os; print(os.sched_getaffinity(0))"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "{0}"
    with pytest.raises(UnavailableError, match="needs no-such-tool"):
        tool("no-such-tool")


def test_layers_are_named() -> None:
    layers = real_sandbox().layers(Limits())
    assert any("account" in layer or "user namespace" in layer for layer in layers)
