"""In real processes: forked workers, Ctrl-C, copies, what a compiled model keeps."""

from __future__ import annotations

import copy
import gc
import pickle
import signal
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from hetnn import _core

RELU = "graph @g {stage = imported} (%a: f32[4]) -> (%y) {\n  %y = relu(%a) : f32[4]\n}\n"
DYNAMIC = RELU.replace("imported", "imported, symbols = [n: 1..64 = 4]").replace("[4]", "[n]")

FORK = """
    import os, signal, sys
    import numpy as np
    {before}
    child = os.fork()
    if child == 0:
        signal.alarm(50)
        import hetnn
        model = '''{model}'''
        exe = hetnn.compile(model, threads=4)
        x = np.random.default_rng(0).standard_normal((1, 64, 56, 56)).astype(np.float32)
        w = np.random.default_rng(1).standard_normal((64, 64, 3, 3)).astype(np.float32)
        for _ in range(3):
            exe(x, w)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    sys.exit(0 if status == 0 else 1)
"""
CONV = (
    "graph @g {stage = imported} (%x: f32[1,64,56,56], %w: f32[64,64,3,3]) -> (%y) {\n"
    "  %c = conv2d(%x, %w) : f32[1,64,54,54]\n  %y = relu(%c) : f32[1,64,54,54]\n}\n"
)
USE = "import hetnn; m = '''{model}'''; e = hetnn.compile(m, threads=4); e(np.ones((1,64,56,56), np.float32), "
BEFORE = {
    "nothing": "",
    "torch's threads": "import torch; torch.set_num_threads(4); torch.randn(512, 512) @ torch.randn(512, 512)",
    "hetnn's import": "import hetnn",
    "hetnn's use": USE + "np.ones((64,64,3,3), np.float32))",
}


@pytest.mark.parametrize("name", BEFORE)
def test_a_forked_worker_runs(name: str) -> None:
    before = BEFORE[name].replace("{model}", CONV)
    code = textwrap.dedent(FORK).replace("{before}", before).replace("{model}", CONV)
    done = subprocess.run([sys.executable, "-c", code], timeout=110, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


LONG = {
    "allocate": "_core.allocate([(str(k), k % 97, k % 97 + 9, 1 + k * 31 % 1009) for k in range(3000)], 10**5, 600.0)",
    "compile": "hetnn.compile(chain(6000), 'cpu+relu-only', rewrite='auto')",
}
INTERRUPT = """
    import os, signal, sys, threading, time
    import hetnn
    from hetnn import _core
    def chain(count):
        lines = ["graph @g {stage = imported} (%v0: f32[1,8,16,16]) -> (%v" + str(count) + ") {"]
        for k in range(count):
            kind = "clamp(%v" + str(k) + ") {min = 0, max = 6}" if k % 2 else "neg(%v" + str(k) + ")"
            lines.append("  %v" + str(k + 1) + " = " + kind + " : f32[1,8,16,16]")
        return chr(10).join([*lines, "}"]) + chr(10)
    at = []
    def press():
        time.sleep(1.5)
        at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press, daemon=True).start()
    try:
        CALL
    except KeyboardInterrupt:
        late = time.monotonic() - at[0]
        hetnn.compile(RELU)
        sys.exit(0 if late < LIMIT else 3)
    sys.exit(4)
"""


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_a_long_call(name: str) -> None:
    """Within 1 s of processor time; a busy machine may take longer by the clock."""
    code = textwrap.dedent(INTERRUPT).replace("CALL", LONG[name]).replace("RELU", repr(RELU)).replace("LIMIT", "5")
    done = subprocess.run([sys.executable, "-c", code], timeout=110, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_static_executable_keeps_nothing_of_its_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[weakref.ref[object]] = []
    compile_graph = _core.compile

    class Held:
        def __init__(self, *arguments: str) -> None:
            self._made = compile_graph(*arguments)
            kept.append(weakref.ref(self))

        def __getattr__(self, name: str) -> object:
            return getattr(self._made, name)

    monkeypatch.setattr("hetnn._core.compile", Held)
    static = hetnn.compile(RELU, "cpu+relu-only")
    on_cpu = hetnn.compile(DYNAMIC, "cpu")
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
    np.testing.assert_array_equal(static(np.ones(4, np.float32)), np.ones(4))
    np.testing.assert_array_equal(on_cpu(np.ones(9, np.float32)), np.ones(9))


def test_copies_bind_new_sizes_on_the_cpu(tmp_path: Path) -> None:
    exe = hetnn.compile(DYNAMIC)
    exe.save(tmp_path / "m.hetnn")
    for one in (pickle.loads(pickle.dumps(exe)), copy.deepcopy(exe), hetnn.load(tmp_path / "m.hetnn")):
        for size in (1, 5, 64):
            np.testing.assert_array_equal(one(np.full(size, -1, np.float32)), np.zeros(size))


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x + self.count


def test_copies_go_on_from_the_states_as_they_are() -> None:
    exe = hetnn.compile(torch.export.export(Counter(), (torch.zeros(2),), strict=False))
    assert [float(exe(torch.zeros(2))[0]) for _ in range(3)] == [1, 2, 3]
    for one in (pickle.loads(pickle.dumps(exe)), copy.deepcopy(exe)):
        assert [float(one(torch.zeros(2))[0]) for _ in range(2)] == [4, 5]
    assert float(exe(torch.zeros(2))[0]) == 4


PRESSED = """
    import os, random, signal, sys, threading, time
    import numpy as np
    import hetnn
    model = '''MODEL'''
    x, w = np.ones((1, 64, 56, 56), np.float32), np.ones((64, 64, 3, 3), np.float32)
    path = sys.argv[1]
    def work():
        exe = hetnn.compile(model, threads=2)
        exe.save(path)
        again = hetnn.load(path, threads=2)
        return again(x, w)
    began = time.monotonic()
    want = work()
    took = time.monotonic() - began
    rng, got = random.Random(1), 0
    for _ in range(40):
        thread = threading.Timer(rng.random() * took, os.kill, (os.getpid(), signal.SIGINT))
        try:
            thread.start()
            try:
                work()
                thread.join()
                time.sleep(0.01)
            finally:
                while thread.is_alive():
                    time.sleep(0.001)
        except KeyboardInterrupt:
            got += 1
    assert got == 40, got
    assert np.array_equal(work(), want)
    assert [name for name in os.listdir(os.path.dirname(path))] == [os.path.basename(path)]
    assert threading.active_count() == 1
"""


def test_ctrl_c_at_any_instant_loses_nothing(tmp_path: Path) -> None:
    code = textwrap.dedent(PRESSED).replace("MODEL", CONV)
    command = [sys.executable, "-c", code, str(tmp_path / "m.hetnn")]
    done = subprocess.run(command, timeout=300, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
