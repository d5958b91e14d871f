"""Attacks of hostile submissions, one per test; each of them succeeds without the sandbox."""

import os
import socket
import threading
import uuid
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.leaderboards.submissions.sandbox.cell import LIMITS, MIB, attack, real_sandbox, said

import opmark
from opmark.leaderboards.submissions.sandbox.session import FINISHED, LATE, LOUD

DENIED = "PermissionError"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A submission's folder that any account may enter."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    inside = tmp_path / "submission"
    inside.mkdir()
    return inside


def test_hidden_instances_cannot_be_read(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = uuid.uuid4().hex
    monkeypatch.setenv("OPMARK_HIDDEN_SEED", seed)
    secret = tmp_path / "leaderboards" / "hidden.json"
    secret.parent.mkdir()
    secret.write_text(seed)
    found = said(
        attack(
            folder,
            f"""
            def walk():
                found = []
                for top, folders, names in os.walk("/"):
                    skipped = {{"/usr", "/proc", sys.prefix}}
                    folders[:] = [name for name in folders if os.path.join(top, name) not in skipped]
                    found += [os.path.join(top, name) for name in names if name == "hidden.json"]
                return found
            def environments():
                pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
                texts = [tried(lambda: open(f"/proc/{{pid}}/environ").read()) for pid in pids]
                return any({seed!r} in text for text in [*texts, *os.environ.values()])
            say(direct=tried(lambda: open({str(secret)!r}).read()), walked=walk(), leaked=environments(),
                root=os.listdir("/"))
            """,
        )
    )
    assert str(found["direct"]).startswith("FileNotFoundError")
    assert (found["walked"], found["leaked"]) == ([], False)
    assert not {"home", "srv", "var", "mnt"} & set(found["root"])  # type: ignore[call-overload]


def test_the_scorer_can_neither_be_seen_nor_changed(folder: Path) -> None:
    code = Path(opmark.__file__).parent / "leaderboards" / "scoring" / "standings.py"
    before = code.read_bytes()
    found = said(
        attack(
            folder,
            f"""
            import signal
            say(pids=sorted(int(pid) for pid in os.listdir("/proc") if pid.isdigit()),
                memory=tried(lambda: open("/proc/{os.getpid()}/mem", "rb").read(1)),
                code=tried(lambda: open({str(code)!r}, "a").write("#")),
                killed=tried(lambda: os.kill({os.getpid()}, signal.SIGKILL)),
                everyone=tried(lambda: os.kill(-1, signal.SIGCONT)),
                parent=os.getppid())
            """,
        )
    )
    assert len(found["pids"]) <= 3, "bubblewrap's first process and the script"  # type: ignore[arg-type]
    assert str(found["memory"]).startswith("FileNotFoundError")
    assert "Error" in str(found["code"])
    assert str(found["killed"]).startswith("ProcessLookupError")
    assert found["parent"] in {0, 1}
    assert code.read_bytes() == before


def test_no_socket_can_be_opened(folder: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind("\0opmark-attack-" + uuid.uuid4().hex)
        local.listen()
        calls: list[object] = []
        server.settimeout(5)
        waiting = threading.Thread(target=lambda: calls.append(_accept(server)))
        waiting.start()
        found = said(
            attack(
                folder,
                f"""
                import socket
                say(tcp=tried(lambda: socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 2)),
                    udp=tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)),
                    unix=tried(lambda: socket.socket(socket.AF_UNIX)),
                    pair=tried(lambda: socket.socketpair()),
                    netlink=tried(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
                    name=tried(lambda: socket.gethostbyname("example.org")),
                    devices=open("/proc/net/dev").read().count(":"))
                """,
            )
        )
        with socket.create_connection(server.getsockname()):
            waiting.join()
    assert [str(found[kind]).partition(":")[0] for kind in ("tcp", "udp", "unix", "pair", "netlink")] == [DENIED] * 5
    assert "Error" in str(found["name"]) or "gaierror" in str(found["name"])
    assert found["devices"] == 1, "only the loopback of an empty network"
    assert len(calls) == 1, "the server heard this test alone"


def _accept(server: socket.socket) -> object:
    connection, address = server.accept()
    connection.close()
    return address


def test_a_fork_bomb_has_no_second_process(folder: Path) -> None:
    mark = uuid.uuid4().hex
    found = said(
        attack(
            folder,
            f"""
            import ctypes, subprocess, threading, time
            libc = ctypes.CDLL(None, use_errno=True)
            def raw(flags):
                child = libc.syscall(56, flags, 0, 0, 0, 0)  # clone, on x86-64
                if child == 0:
                    os._exit(0)
                return child
            threads = 0
            try:
                while threads < 1000:
                    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
                    threads += 1
            except RuntimeError:
                pass
            say(fork=tried(os.fork), vfork=tried(lambda: subprocess.run(["/bin/echo", {mark!r}])),
                spawn=tried(lambda: os.posix_spawn("/bin/echo", ["echo", {mark!r}], {{}})),
                clone=raw(17) if os.uname().machine == "x86_64" else -1, threads=threads)
            os._exit(0)
            """,
        )
    )
    assert [str(found[way]).partition(":")[0] for way in ("fork", "vfork", "spawn")] == [DENIED] * 3
    assert found["clone"] == -1
    assert 0 < int(str(found["threads"])) <= LIMITS.processes
    assert not [process for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or [])]


def test_the_disk_cannot_be_filled(folder: Path) -> None:
    found = said(
        attack(
            folder,
            """
            def fill(place):
                written, number = 0, 0
                while number < 1000:
                    number += 1
                    try:
                        with open(f"{place}/{number}", "wb") as stream:
                            for _ in range(64):
                                written += stream.write(bytes(1 << 20))
                    except OSError as error:
                        if error.errno != 27:  # a file is full: the next one
                            return written, error.strerror
                return written, "no end"
            import signal
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            places = ("/tmp", "/", "/submission", "/dev", "/dev/shm", "/usr")
            say(**{place.strip("/") or "root": fill(place) for place in places})
            """,
        )
    )
    filled = dict(found)
    written, reason = filled.pop("tmp")  # type: ignore[misc]
    assert written <= LIMITS.temporary_bytes
    assert reason == "No space left on device"
    assert {str(place): answer[0] for place, answer in filled.items()} == dict.fromkeys(filled, 0)  # type: ignore[index]
    assert [path.name for path in folder.iterdir()] == ["attack.py"]


def test_memory_cannot_be_eaten(folder: Path) -> None:
    found = said(
        attack(
            folder,
            """
            import mmap
            eaten = 0
            kept = []
            try:
                while eaten < 1 << 33:
                    kept.append(bytearray(1 << 24))
                    eaten += 1 << 24
            except MemoryError:
                pass
            kept.clear()
            def shared():
                held, size = [], 0
                try:
                    while size < 1 << 33:
                        held.append(mmap.mmap(-1, 1 << 24))
                        size += 1 << 24
                except OSError as error:
                    return size
                return size
            say(eaten=eaten, shared=shared(), hidden=tried(lambda: os.memfd_create("x")))
            """,
        )
    )
    assert 0 < int(str(found["eaten"])) <= LIMITS.memory_bytes
    assert int(str(found["shared"])) <= LIMITS.memory_bytes
    assert str(found["hidden"]).startswith(DENIED)


def test_sleeping_for_ever_ends_with_the_time(folder: Path) -> None:
    mark = uuid.uuid4().hex
    heard = attack(
        folder,
        f"""
        import signal, time
        for number in range(1, 32):
            tried(lambda: signal.signal(number, signal.SIG_IGN))
        say(mark={mark!r})
        while True:
            time.sleep(1000)
        """,
        seconds=1.5,
    )
    assert heard.end == LATE
    assert said(heard) == {"mark": mark}, "what was said in time is kept"
    here = str(folder)
    assert not [process for process in psutil.process_iter(["cmdline"]) if here in (process.info["cmdline"] or [])]


def test_closing_every_stream_does_not_outlive_the_time(folder: Path) -> None:
    heard = attack(
        folder,
        """
        import time
        os.closerange(0, 3)
        time.sleep(1000)
        """,
        seconds=1.5,
    )
    assert (heard.end, heard.output) == (LATE, b"")


def test_endless_garbage_is_cut_off(folder: Path) -> None:
    heard = attack(
        folder,
        """
        while True:
            os.write(1, os.urandom(65536))
        """,
    )
    assert heard.end == LOUD
    assert len(heard.output) <= LIMITS.output_bytes + MIB
    loud = attack(folder, "while True: os.write(2, b'x' * 65536)", seconds=1.5)
    assert (loud.end, len(loud.errors) <= 16384) == (LATE, True)


def test_processor_time_is_limited_over_all_threads(folder: Path) -> None:
    heard = attack(folder, "say(begun=True)\nwhile True: pass", limits=replace(LIMITS, cpu_s=1))
    assert heard.end == FINISHED, "killed by its limit, long before the time was up"
    assert heard.code not in {0, None}


def test_links_and_proc_lead_nowhere(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden")
    (folder / "link").symlink_to(secret)
    found = said(
        attack(
            folder,
            f"""
            path = {str(secret)!r}
            def linked():
                os.symlink(path, "/tmp/link")
                return open("/tmp/link").read()
            ways = {{
                "link": lambda: open("link").read(),
                "made": linked,
                "hard": lambda: os.link(path, "/tmp/hard"),
                "dots": lambda: open("../" * 20 + path.lstrip("/")).read(),
                "root": lambda: open("/proc/1/root" + path).read(),
                "self": lambda: open("/proc/self/root" + path).read(),
                "cwd": lambda: open("/proc/1/cwd/" + "../" * 20 + path.lstrip("/")).read(),
                "chroot": lambda: os.chroot("/tmp"),
                "sysctl": lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/tmp/x"),
                "sysrq": lambda: open("/proc/sysrq-trigger", "w").write("b"),
                "device": lambda: os.mknod("/tmp/sda", 0o60600, os.makedev(8, 0)),
                "setuid": lambda: os.setuid(0),
            }}
            descriptors = [f"/proc/self/fd/{{fd}}" for fd in os.listdir("/proc/self/fd")]
            inherited = [os.readlink(fd) for fd in descriptors if os.path.lexists(fd)]
            status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
            say(ways={{name: tried(way) for name, way in ways.items()}}, inherited=inherited,
                status={{name: value.strip() for name, value in status.items()}})
            """,
        )
    )
    ways: dict[str, str] = found["ways"]  # type: ignore[assignment]
    assert {name: str(way).partition(":")[0] for name, way in ways.items() if "Error" not in str(way)} == {}
    status: dict[str, str] = found["status"]  # type: ignore[assignment]
    assert set(status["CapEff"]) == set(status["CapPrm"]) == {"0"}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert "0" not in status["Uid"].split()
    assert not [name for name in found["inherited"] if str(tmp_path) in name]  # type: ignore[attr-defined]


def test_a_later_run_is_the_first_one_again(folder: Path) -> None:
    tamper = """
        import glob, sysconfig
        packages = sysconfig.get_path("purelib")
        ways = {
            "own": lambda: open("attack.py", "a").write("#"),
            "rename": lambda: os.rename("attack.py", "other.py"),
            "cache": lambda: os.mkdir("__pycache__"),
            "packages": lambda: open(packages + "/sitecustomize.py", "w").write("evil"),
            "compiled": lambda: open("/compiled/evil.nbc", "w").write("evil"),
            "mode": lambda: os.chmod("attack.py", 0o777),
        }
        before = os.listdir("/tmp")
        open("/tmp/left", "w").write("x")
        say(ways={name: tried(way) for name, way in ways.items()}, before=before)
        """
    first, second = (said(attack(folder, tamper)) for _ in range(2))
    assert first == second
    assert "left" not in first["before"], "a /tmp of its own, and a new one every time"  # type: ignore[operator]
    assert all("Error" in way for way in first["ways"].values())  # type: ignore[attr-defined]
    assert [path.name for path in folder.iterdir()] == ["attack.py"]


def test_an_honest_program_runs(folder: Path) -> None:
    heard = attack(folder, "say(heard=sys.stdin.read(), seed=os.environ['OPMARK_SEED'])", text=b"a problem\n" * 50000)
    assert (heard.end, heard.code) == (FINISHED, 0)
    assert len(str(said(heard)["heard"])) == 500000
    assert "seccomp: no processes, no sockets" in real_sandbox().layers(LIMITS)
