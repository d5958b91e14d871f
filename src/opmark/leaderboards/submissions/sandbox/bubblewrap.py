"""The sandbox: bubblewrap's namespaces, a separate account, a filter for system calls, and hard limits.

Bubblewrap itself starts with an empty environment, because the submission can inspect its first process. If root starts
it, the submission runs under an account that nothing else uses: an account of a user namespace would still be root
outside, and could write to `/proc/sys`. Otherwise it runs in a user namespace without privileges.
"""

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from opmark.core.errors import UnavailableError
from opmark.leaderboards.submissions.sandbox.limits import Confined, Limits, pinned, tool
from opmark.leaderboards.submissions.sandbox.runtime import FOLDER, SCRATCH, mounts
from opmark.leaderboards.submissions.sandbox.syscalls import seccomp_filter

GONE_WITHIN_S = 10.0
# Account numbers far above those of people and services.
FIRST_ACCOUNT = 1_900_000_000
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")


class Bubblewrap:
    """The sandbox for submissions of others."""

    name = "bubblewrap"

    def layers(self, limits: Limits) -> tuple[str, ...]:
        """The protections of a run, for its record."""
        account = "an account of its own" if os.geteuid() == 0 else "an unprivileged user namespace"
        return (
            "namespaces: mount, pid, network, ipc, uts, cgroup",
            account,
            "read-only files, a private /tmp",
            "no new privileges, no capabilities",
            "seccomp: no processes, no sockets",
            f"limits: {limits.memory_bytes >> 20} MiB memory, {limits.temporary_bytes >> 20} MiB disk,"
            f" {limits.output_bytes >> 20} MiB output, {limits.processes} threads, processor time",
            "wall clock",
        )

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
        program = require_bubblewrap()
        with tempfile.TemporaryFile() as rules, _until_gone() as sign_of_life:
            rules.write(seccomp_filter())
            rules.seek(0)
            words = [*pinned(processor), program, *_NAMESPACES, *_account_options()]
            words += ["--new-session", "--die-with-parent", "--hostname", "sandbox", "--clearenv"]
            words += ["--sync-fd", str(sign_of_life)]
            for name, value in environment.items():
                words += ["--setenv", name, value]
            words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
            words += ["--size", str(limits.temporary_bytes), "--perms", "1777", "--tmpfs", SCRATCH]
            words += mounts(folder)
            words += ["--remount-ro", "/", "--chdir", FOLDER, "--seccomp", str(rules.fileno()), "--"]
            words += [*limits.prefix(), *_account_words(), *command]
            yield Confined(command=tuple(words), environment={}, descriptors=(rules.fileno(), sign_of_life))


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
    hint = "to run only what you wrote yourself, pass --sandbox none --i-trust-this"
    if program is None:
        raise UnavailableError(
            "submissions run in a sandbox, and bubblewrap is not installed",
            hint=f"install your distribution's bubblewrap package; {hint}",
        )
    reason = _refusal(program)
    if reason:
        raise UnavailableError(f"bubblewrap cannot make a sandbox here: {reason}", hint=hint)
    return program


@cache
def _refusal(program: str) -> str:
    """The reason why bubblewrap fails here; empty where it works."""
    command = [program, *_NAMESPACES, *_account_options(), "--ro-bind", "/", "/", "--proc", "/proc"]
    command += ["--size", "4096", "--perms", "1777", "--tmpfs", SCRATCH, "--", *_account_words(), tool("true")]
    tried = subprocess.run(command, capture_output=True, text=True, check=False, env={}, stdin=subprocess.DEVNULL)
    last = tried.stderr.strip().splitlines()[-1:] or [f"it ended with {tried.returncode}"]
    return "" if tried.returncode == 0 else last[0].removeprefix("bwrap: ")


def _account_options() -> tuple[str, ...]:
    if os.geteuid() == 0:
        return ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
    return ("--unshare-user", "--uid", "65534", "--gid", "65534")


def _account_words() -> tuple[str, ...]:
    """The words that give up root; each scoring process uses an account of its own, so that runs cannot meet."""
    if os.geteuid() != 0:
        return ()
    account = str(FIRST_ACCOUNT + os.getpid() % 10**8)
    drop = (f"--reuid={account}", f"--regid={account}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")
    return (tool("setpriv"), *drop, "--no-new-privs", "--")
