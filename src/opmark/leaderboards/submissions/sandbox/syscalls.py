"""The seccomp filter for bubblewrap: the system calls that a submission may not make.

A program cannot remove its own filter. Threads are allowed, because many runtimes need them. New processes are not,
because the memory limit holds per process.
"""

import errno
import tempfile

from opmark.core.errors import MissingExtraError, UnavailableError
from opmark.core.registry import install_hint

CLONE_THREAD = 0x10000
TRUST_HINT = "to run only what you wrote yourself, pass --sandbox none --i-trust-this"
# The filter must be able to deny these; otherwise no run is allowed.
PROCESSES = ("fork", "vfork")
SOCKETS = ("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4")
# io_uring bypasses the filter, shared segments outlive their process, and tracing reads other processes.
OTHERS = (
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "memfd_create",
    "memfd_secret",
    "shmget",
    "shmat",
    "msgget",
    "semget",
    "mq_open",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "perf_event_open",
    "bpf",
    "userfaultfd",
    "unshare",
    "setns",
    "mount",
    "umount2",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsmount",
    "mount_setattr",
    "pivot_root",
    "chroot",
    "open_by_handle_at",
    "name_to_handle_at",
    "add_key",
    "keyctl",
    "request_key",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "sched_setaffinity",
    "sched_setscheduler",
    "sched_setattr",
    "personality",
    "quotactl",
    "syslog",
)


def seccomp_filter() -> bytes:
    """The filter as a BPF program. Raises `MissingExtraError` or `UnavailableError`."""
    try:
        import pyseccomp

        found = pyseccomp.SyscallFilter(defaction=pyseccomp.ALLOW)
        denied = pyseccomp.ERRNO(errno.EPERM)
        for name in (*PROCESSES, *SOCKETS, *OTHERS):
            _deny(found, denied, name)
        # glibc falls back from clone3, whose flags a filter cannot read, to clone, whose flags it can
        found.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
        found.add_rule(denied, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, CLONE_THREAD, 0))
        with tempfile.TemporaryFile() as stream:
            found.export_bpf(stream)
            stream.seek(0)
            return stream.read()
    except ModuleNotFoundError as error:
        hint = f"{install_hint('pyseccomp')}; {TRUST_HINT}"
        raise MissingExtraError("submissions run in a sandbox, which needs pyseccomp", hint=hint) from error
    except (OSError, RuntimeError) as error:
        raise UnavailableError(
            f"no filter for system calls can be made: {error}", hint="install libseccomp (package libseccomp2)"
        ) from error


def _deny(found: object, denied: object, name: str) -> None:
    try:
        found.add_rule(denied, name)  # type: ignore[attr-defined]
    except (OSError, ValueError, RuntimeError):
        # libseccomp is older than the call; then the kernel is usually too, and refuses it as well
        if name in (*PROCESSES, *SOCKETS):
            raise
