"""A device server that is killed, paused, cut off, slow, garbled and back again, many times: nothing hangs, nothing is
wrong, nothing leaks. `make fault` does each a hundred times."""

from __future__ import annotations

import ctypes
import gc
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import hetnn
from faults import ROUNDS, paused
from hetnn.errors import Unavailable

pytestmark = pytest.mark.fault

TEXT = (
    "graph @r {stage = imported} (%x: f32[1,3,8,8]) -> (%y) {\n  %a = relu(%x) : f32[1,3,8,8]\n"
    "  %y = erf(%a) : f32[1,3,8,8]\n}\n"
)
RNG = np.random.default_rng(0)
# No answer may be that of another request.
INPUTS = [RNG.standard_normal((1, 3, 8, 8)).astype(np.float32) for _ in range(16)]
TIMEOUT_S = 0.5


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The network and the token."""
    (tmp_path / "token").write_text("known to both\n")
    hetnn.compile(TEXT, "cpu+relu-only", strategy="take-all").save(tmp_path / "net.hetnn")
    return tmp_path / "net.hetnn", tmp_path / "token"


@pytest.fixture
def expected(files: tuple[Path, Path]) -> list[np.ndarray]:
    here = hetnn.load(files[0])
    return [np.asarray(here.run([x])[0]) for x in INPUTS]


def started(token: Path, port: int = 0, *more: str) -> tuple[subprocess.Popen[str], int]:
    words = ["--device", "relu-only", "--listen", f"127.0.0.1:{port}", "--token-file", str(token), *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "hetnn", "device", "serve", *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, int(line.partition('"port": ')[2].rstrip("}\n "))


def loaded(files: tuple[Path, Path], port: int, timeout_s: float = TIMEOUT_S, **more: str) -> hetnn.Executable:
    place = {"at": f"127.0.0.1:{port}", "token_file": files[1], "timeout_s": timeout_s, **more}
    return hetnn.load(files[0], devices={"relu-only": place})


def run(exe: hetnn.Executable, k: int, expected: list[np.ndarray]) -> bool:
    """Whether there was an answer, which is right; a refusal comes in time."""
    began = time.monotonic()
    try:
        found = exe.run([INPUTS[k % len(INPUTS)]])[0]
    except Unavailable:
        return False
    finally:
        assert time.monotonic() - began < TIMEOUT_S + 20
    np.testing.assert_array_equal(found, expected[k % len(INPUTS)])
    return True


def runs_again(exe: hetnn.Executable, k: int, expected: list[np.ndarray]) -> None:
    """A machine under load may miss a deadline of half a second; a device that is back is taken up."""
    assert any(run(exe, k, expected) for _ in range(40))


def open_files(process: int | str = "self") -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    gc.collect()
    before, threads = open_files(), threading.active_count()
    yield
    until = time.monotonic() + 20
    while time.monotonic() < until:
        gc.collect()
        if open_files() <= before + 2 and threading.active_count() <= threads:
            return
        time.sleep(0.1)
    assert (open_files(), threading.active_count()) <= (before + 2, threads)


def test_killed_and_started_again(files: tuple[Path, Path], expected: list[np.ndarray]) -> None:
    process, port = started(files[1])
    exe = loaded(files, port, 20)
    for k in range(ROUNDS):
        assert run(exe, k, expected)
        killer = threading.Timer(random.Random(k).random() * 0.005, process.kill)
        killer.start()
        for _ in range(5):
            run(exe, k, expected)  # one of them meets it
        killer.join()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
        assert not run(exe, k, expected)
        process, _ = started(files[1], port)
        assert run(exe, k, expected)
    process.terminate()
    assert process.wait(20) == 0
    process.stdout.close()  # type: ignore[union-attr]


def test_paused_and_continued(files: tuple[Path, Path], expected: list[np.ndarray]) -> None:
    process, port = started(files[1])
    exe = loaded(files, port)
    runs_again(exe, 0, expected)
    files_there = open_files(process.pid)
    for k in range(ROUNDS):
        paused(process)
        assert not run(exe, k, expected)
        process.send_signal(signal.SIGCONT)
        runs_again(exe, k + 1, expected)
    until = time.monotonic() + 20
    while open_files(process.pid) > files_there + 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert open_files(process.pid) <= files_there + 2
    process.terminate()
    assert process.wait(20) == 0
    process.stdout.close()  # type: ignore[union-attr]


def test_it_ends_whichever_thread_the_signal_wakes(files: tuple[Path, Path], expected: list[np.ndarray]) -> None:
    process, port = started(files[1])
    exe = loaded(files, port)
    runs_again(exe, 0, expected)
    # The thread of the connection, which stays while it is open: one that ends would take the signal with it.
    tasks = sorted(int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir())
    assert tasks[0] == process.pid
    assert ctypes.CDLL(None).tgkill(process.pid, tasks[1], int(signal.SIGTERM)) == 0
    assert process.wait(10) == 0
    process.stdout.close()  # type: ignore[union-attr]


class Cable:
    """Carries bytes between its port and another one, and may be cut: every connection ends at once. `alter` is what
    happens to a piece on its way."""

    def __init__(self, port: int) -> None:
        self.alter: Callable[[bytes], bytes] = bytes
        self._there = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listening.accept()
                there = socket.create_connection(("127.0.0.1", self._there))
                self._ends += [here, there]
                for ends in ((here, there), (there, here)):
                    self._threads.append(threading.Thread(target=self._carry, args=ends, daemon=True))
                    self._threads[-1].start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while piece := one.recv(1 << 16):
                other.sendall(self.alter(piece))
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def remove(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(20)


@contextmanager
def behind_a_cable(
    files: tuple[Path, Path], expected: list[np.ndarray], timeout_s: float = TIMEOUT_S, *more: str, **place: str
) -> Iterator[tuple[hetnn.Executable, Cable]]:
    """An executable whose device stands behind a cable. Afterwards the server has kept no connection of those that are
    gone, and ends when it is told to."""
    process, port = started(files[1], 0, *more)
    cable = Cable(port)
    exe = loaded(files, cable.port, timeout_s, **place)
    runs_again(exe, 0, expected)
    files_there = open_files(process.pid)
    yield exe, cable
    del exe
    until = time.monotonic() + 20
    while open_files(process.pid) > files_there + 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert open_files(process.pid) <= files_there + 2
    cable.remove()
    process.terminate()
    assert process.wait(20) == 0
    process.stdout.close()  # type: ignore[union-attr]


def test_cut_off_and_joined_again(files: tuple[Path, Path], expected: list[np.ndarray]) -> None:
    answered = 0
    with behind_a_cable(files, expected, 20) as (exe, cable):
        for k in range(ROUNDS):
            cutter = threading.Timer(random.Random(k).random() * 0.005, cable.cut)
            cutter.start()
            answered += sum(run(exe, k + step, expected) for step in range(5))
            cutter.join()
            runs_again(exe, k, expected)
    assert answered > 0


def test_slow_and_fast_again(files: tuple[Path, Path], expected: list[np.ndarray]) -> None:
    """An answer that comes in time is taken, however late; of one that does not, nothing is left for the next run."""
    with behind_a_cable(files, expected) as (exe, cable):
        for k in range(ROUNDS):
            draw = random.Random(k)
            late_s = draw.choice([0.05, 0.1, TIMEOUT_S, 2 * TIMEOUT_S]) * draw.random()
            cable.alter = lambda piece, late_s=late_s: time.sleep(late_s) or piece  # type: ignore[misc, func-returns-value]
            for step in range(2):
                run(exe, k + step, expected)
            cable.alter = bytes
            runs_again(exe, k + 2, expected)


def flipped(draw: random.Random, often: float) -> Callable[[bytes], bytes]:
    """One bit of a piece, now and then."""

    def alter(piece: bytes) -> bytes:
        out = bytearray(piece)
        if draw.random() < often:
            out[draw.randrange(len(out))] ^= 1 << draw.randrange(8)
        return bytes(out)

    return alter


@pytest.mark.parametrize("way", ["open", "tls"])
def test_garbled_and_sound_again(
    way: str, files: tuple[Path, Path], expected: list[np.ndarray], tmp_path: Path
) -> None:
    """No bit that is altered on its way is taken for what was sent."""
    serve, place = ((), {}) if way == "open" else over_tls(tmp_path)
    with behind_a_cable(files, expected, 5, *serve, **place) as (exe, cable):
        for k in range(ROUNDS):
            cable.alter = flipped(random.Random(k), 0.3)
            for step in range(3):
                run(exe, k + step, expected)
            cable.alter = bytes
            runs_again(exe, k + 3, expected)


def over_tls(folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Words of a server, and a place, with a certificate of its own."""
    certificate, key = str(folder / "cert.pem"), str(folder / "key.pem")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*make.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return ("--tls-cert", certificate, "--tls-key", key), {"tls_ca": certificate}
