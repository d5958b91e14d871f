"""The sandbox: bubblewrap's namespaces, a separate account, a filter for system calls, and hard limits.

Bubblewrap itself starts with an empty environment and reads its options from a descriptor, because the submission can
inspect its first process. If root starts it, the submission runs under an account that nothing else uses: an account of
a user namespace would still be root outside, and could write to `/proc/sys`. Otherwise it runs in a user namespace
without privileges.

A shell prepares mounts that bubblewrap cannot make, in a namespace of its own: a `/tmp` that limits the number of its
files, because empty files take kernel memory that no other limit counts, and folders whose mount does not name their
source.
"""

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Self

import opmark
from opmark.core.errors import UnavailableError
from opmark.leaderboards.submissions.sandbox.limits import Confined, Limits, pinned, tool
from opmark.leaderboards.submissions.sandbox.runtime import FOLDER, INTERPRETER, SCRATCH, View, compiled_code
from opmark.leaderboards.submissions.sandbox.syscalls import TRUST_HINT, seccomp_filter

GONE_WITHIN_S = 10.0
# Account numbers far above those of people and services.
FIRST_ACCOUNT = 1_900_000_000
# Arguments: a folder, size and number of files of /tmp, the count of folders to show, those folders, a command.
_STAGE = """
set -e
stage=$1 size=$2 files=$3 count=$4
shift 4
mount -t tmpfs -o mode=755,size=1m tmpfs "$stage"
mkdir "$stage/scratch" "$stage/none"
mount -t tmpfs -o "mode=1777,nosuid,nodev,size=$size,nr_inodes=$files" tmpfs "$stage/scratch"
number=0
while [ "$number" -lt "$count" ]; do
  mkdir "$stage/$number"
  cd "$1"
  mount -t overlay -o "ro,lowerdir=.:$stage/none" overlay "$stage/$number" 2>/dev/null \\
    || mount --bind . "$stage/$number"
  cd /
  number=$((number + 1))
  shift
done
exec env -i "$@"
"""
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")


@dataclass(frozen=True)
class Bubblewrap:
    """The sandbox for submissions of others; a program sees nothing of the folders in `private`."""

    private: tuple[Path, ...] = ()
    name = "bubblewrap"

    def hiding(self, *folders: Path) -> Self:
        """The same sandbox, which also hides `folders`."""
        return replace(self, private=tuple(dict.fromkeys((*self.private, *folders))))

    def layers(self, limits: Limits) -> tuple[str, ...]:
        """The protections of a run, for its record."""
        account = "an account of its own" if os.geteuid() == 0 else "an unprivileged user namespace"
        return (
            "namespaces: mount, pid, network, ipc, uts, cgroup",
            account,
            "read-only files without the workspace, a private /tmp",
            "no new privileges, no capabilities",
            "seccomp: no processes, no sockets",
            f"limits: {limits.memory_bytes >> 20} MiB memory, {limits.temporary_bytes >> 20} MiB disk in"
            f" {limits.temporary_files} files, {limits.output_bytes >> 20} MiB output, {limits.processes} threads,"
            " processor time",
            "wall clock",
        )

    def program(self, path: Path) -> str | None:
        """The path inside of a program of this machine, None where it cannot be seen there."""
        return self._view.inside(path)

    @contextlib.contextmanager
    def confined(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        limits: Limits,
        environment: dict[str, str],
        processor: int | None = None,
    ) -> Iterator[Confined]:
        """Prepare `command` to run in `folder` without access to anything else. Raises `UnavailableError`."""
        program, view = require_bubblewrap(), self._view
        with (
            tempfile.TemporaryFile() as rules,
            tempfile.TemporaryFile() as said,
            tempfile.TemporaryDirectory(prefix="opmark-run-") as prepared,
            _until_gone() as sign_of_life,
        ):
            stage, compiled = Path(prepared, "stage"), Path(prepared, "compiled")
            stage.mkdir()
            _copy_compiled(compiled, view)
            rules.write(seccomp_filter())
            rules.seek(0)
            sources = [str(stage / str(number)) for number in range(len(view.moved))]
            options = [*_NAMESPACES, *_account_options(), "--new-session", "--die-with-parent", "--hostname", "sandbox"]
            options += ["--clearenv", "--sync-fd", str(sign_of_life), "--seccomp", str(rules.fileno())]
            for name, value in {**environment, **view.variables()}.items():
                options += ["--setenv", name, value]
            options += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
            options += ["--bind", str(stage / "scratch"), SCRATCH]
            options += view.mounts(str(folder.resolve()), str(compiled), sources)
            options += ["--remount-ro", "/", "--chdir", FOLDER]
            said.write("\0".join((*options, "")).encode())
            said.seek(0)
            words = [view.interpreter if word == INTERPRETER else word for word in command]
            start = [*pinned(processor), *_stage_words(stage, limits, [str(one.host) for one in view.moved])]
            # A submission under the user's own account can change bubblewrap's first process: it has limits as well.
            start += [
                *limits.prefix(threads=False),
                program,
                "--args",
                str(said.fileno()),
                "--",
                *limits.prefix(),
                *_account_words(),
                *words,
            ]
            descriptors = (rules.fileno(), said.fileno(), sign_of_life)
            yield Confined(command=tuple(start), environment={}, descriptors=descriptors)

    @cached_property
    def _view(self) -> View:
        return View(self.private)


def _copy_compiled(place: Path, view: View) -> None:
    """Copy numba's compiled functions, under the names that they need inside."""
    place.mkdir()
    package = view.inside(Path(opmark.__file__).parent)
    for name, folder in compiled_code(package or "").items():
        (place / name).mkdir()
        for path in (*folder.glob("*.nbi"), *folder.glob("*.nbc")):
            with contextlib.suppress(FileNotFoundError):  # another process compiles just now
                shutil.copyfile(path, place / name / path.name)


def _stage_words(stage: Path, limits: Limits, folders: Sequence[str]) -> list[str]:
    """The words that prepare mounts in `stage`, in a mount namespace of its own, for the command after them."""
    namespace = ("--mount",) if os.geteuid() == 0 else ("--user", "--map-root-user", "--mount")
    sizes = (str(limits.temporary_bytes), str(limits.temporary_files), str(len(folders)))
    return [tool("unshare"), *namespace, "--", tool("sh"), "-c", _STAGE, "sh", str(stage), *sizes, *folders]


@contextlib.contextmanager
def _until_gone() -> Iterator[int]:
    """A descriptor for the first process inside; the block ends when no process holds it any more.

    After bubblewrap is killed, its namespace ends a moment later; only then is the run over.
    """
    reading, writing = os.pipe()
    try:
        yield writing
    finally:
        os.close(writing)
        select.select([reading], [], [], GONE_WITHIN_S)
        os.close(reading)


def require_bubblewrap() -> str:
    """The path of bubblewrap. Raises `UnavailableError` where it is missing or cannot make a sandbox."""
    program = shutil.which("bwrap")
    if program is None:
        raise UnavailableError(
            "submissions run in a sandbox, and bubblewrap is not installed",
            hint=f"install your distribution's bubblewrap package; {TRUST_HINT}",
        )
    reason = _refusal(program)
    if reason:
        raise UnavailableError(f"bubblewrap cannot make a sandbox here: {reason}", hint=TRUST_HINT)
    return program


@cache
def _refusal(program: str) -> str:
    """The reason why bubblewrap fails here; empty where it works."""
    with tempfile.TemporaryDirectory(prefix="opmark-run-") as stage:
        command = [*_stage_words(Path(stage), Limits(), ()), program, *_NAMESPACES, *_account_options()]
        command += ["--ro-bind", "/", "/", "--proc", "/proc", "--bind", f"{stage}/scratch", SCRATCH]
        command += ["--", *_account_words(), tool("true")]
        tried = subprocess.run(command, capture_output=True, text=True, check=False, env={}, stdin=subprocess.DEVNULL)
    last = tried.stderr.strip().splitlines()[-1:] or [f"it ended with {tried.returncode}"]
    return "" if tried.returncode == 0 else last[0].removeprefix("bwrap: ")


def _account_options() -> tuple[str, ...]:
    if os.geteuid() == 0:
        return ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
    return ("--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL")


def _account_words() -> tuple[str, ...]:
    """The words that give up root; each scoring process uses an account of its own, so that runs cannot meet."""
    if os.geteuid() != 0:
        return ()
    account = str(FIRST_ACCOUNT + os.getpid() % 10**8)
    drop = (f"--reuid={account}", f"--regid={account}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")
    return (tool("setpriv"), *drop, "--no-new-privs", "--")
