"""How many threads a run has where none are asked for: what the environment, or torch beside it, says."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

GRAPH = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\\n  %y = relu(%x) : f32[4]\\n}"
ALL = len(os.sched_getaffinity(0))
SAYING = ("OMP_NUM_THREADS", "HETNN_CPUS", "HETNN_NUM_THREADS")


def threads(before: str = "", options: str = "", **environment: str) -> int:
    """Of an executable compiled in a process of its own, which runs `before` first."""
    code = f'{before}\nimport hetnn\nprint(hetnn.compile("{GRAPH}", "cpu"{options}).threads)'
    kept = {name: value for name, value in os.environ.items() if name not in SAYING}
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**kept, **environment}, capture_output=True, text=True, check=True
    )
    return int(ran.stdout)


@pytest.mark.parametrize(
    ("before", "options", "environment", "wanted"),
    [
        ("", "", {}, ALL),
        ("", "", {"OMP_NUM_THREADS": "1"}, 1),
        ("", "", {"OMP_NUM_THREADS": "1", "HETNN_CPUS": "3"}, 3),
        ("", "", {"HETNN_NUM_THREADS": "1"}, 1),
        ("", "", {"HETNN_NUM_THREADS": "4000"}, ALL),
        ("", "", {"HETNN_NUM_THREADS": "2", "HETNN_CPUS": "3", "OMP_NUM_THREADS": "1"}, 2),
        ("import torch; torch.set_num_threads(1)", "", {"HETNN_NUM_THREADS": "2", "HETNN_CPUS": "2"}, 2),
        ("", f", threads={ALL}", {"HETNN_NUM_THREADS": "1"}, ALL),
        ("", ", threads=0", {"OMP_NUM_THREADS": "1"}, 1),
        ("", f", threads={ALL}", {"OMP_NUM_THREADS": "1"}, ALL),
        ("import torch; torch.set_num_threads(1)", "", {}, 1),
        ("import torch; torch.set_num_threads(1)", f", threads={ALL}", {}, ALL),
        ("import torch; torch.set_num_threads(1)", "", {"HETNN_CPUS": "3"}, 3),
        ("import torch; torch.set_num_threads(4000)", "", {}, ALL),
    ],
)
def test_threads_are_as_many_as_the_environment_and_torch_say(
    before: str, options: str, environment: dict[str, str], wanted: int
) -> None:
    assert threads(before, options, **environment) == wanted


def test_loading_counts_as_compiling_does(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "net.hetnn")
    load = f'; hetnn.compile("{GRAPH}", "cpu").save({path!r}); print(hetnn.load({path!r}).threads); raise SystemExit'
    assert threads("import torch, hetnn; torch.set_num_threads(1)" + load) == 1


def failing(**environment: str) -> str:
    """What a process says that compiles and runs a graph in an environment, and fails."""
    code = f'import hetnn\nhetnn.compile("{GRAPH}", "cpu")'
    kept = {name: value for name, value in os.environ.items() if name not in SAYING}
    ran = subprocess.run([sys.executable, "-c", code], env={**kept, **environment}, capture_output=True, text=True)
    assert ran.returncode != 0
    return ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("count", ["0", "-1", "two", "4097", ""])
def test_an_odd_number_of_threads_is_refused(count: str) -> None:
    said = failing(HETNN_NUM_THREADS=count)
    assert "InvalidModel: the environment's HETNN_NUM_THREADS says how many threads to use" in said
    assert f"got '{count}'" in said


def test_instructions_may_be_chosen() -> None:
    """Answers in narrower vectors are those in wider ones, but for roundings."""
    code = (
        "import hetnn, numpy as np\n"
        'text = """graph @g {stage = imported} (%x: f32[3,40], %w: f32[50,40]) -> (%y) {\n'
        '  %y = linear(%x, %w) : f32[3,50]\n}"""\n'
        "a = np.random.default_rng(0).standard_normal((3, 40), np.float32)\n"
        "b = np.random.default_rng(1).standard_normal((50, 40), np.float32)\n"
        'y = hetnn.compile(text, "cpu")(a, b)\n'
        "assert np.abs(y - a @ b.T).max() < 1e-5\n"
        "print(y.astype(np.float32).tobytes().hex())"
    )

    def answer(**environment: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
        )
        return ran.stdout

    assert answer(HETNN_TARGET="") == answer()
    assert answer(HETNN_TARGET="baseline")


def test_unknown_instructions_are_refused() -> None:
    said = failing(HETNN_TARGET="avx1024")
    assert said.startswith("hetnn.errors.InvalidModel: the environment's HETNN_TARGET says which instructions to use")
    assert "baseline, got 'avx1024'" in said


def test_tiles_and_vectors_give_the_same_bits_from_each_others_files(tmp_path: Path) -> None:
    if "amx_int8" not in Path("/proc/cpuinfo").read_text(encoding="utf-8").split():
        pytest.skip("the processor has no tiles of bytes (amx_int8)")
    weight = np.random.default_rng(0).integers(-128, 128, (37, 70, 3, 3), dtype=np.int8).tobytes()
    value = f'i8[37,70,3,3] "{base64.b64encode(weight).decode()}"'
    graph = f"""graph @q {{stage = imported}} (%x: f32[1,70,9,17]) -> (%y) {{
      %w = constant() {{value = {value}, q_scale = [0.01]}} : i8{{0.01}}[37,70,3,3]
      %q = quantize(%x) {{q_scale = [0.03], q_zero = -4}} : i8{{0.03:-4}}[1,70,9,17]
      %c = conv2d(%q, %w) {{padding = [1,1,1,1], q_scale = [0.5], q_zero = 3}} : i8{{0.5:3}}[1,37,9,17]
      %y = dequantize(%c) : f32[1,37,9,17]
    }}"""
    (tmp_path / "graph.ir").write_text(graph, encoding="utf-8")
    start = "import sys, hetnn, numpy as np, pathlib; folder = pathlib.Path(sys.argv[1]);"
    compiles = start + 'hetnn.compile((folder / "graph.ir").read_text(), "cpu").save(folder / sys.argv[2])'
    runs = (
        start + "x = np.random.default_rng(1).standard_normal((1, 70, 9, 17), dtype=np.float32);"
        "print(np.asarray(hetnn.load(folder / sys.argv[2], threads=2)(x)).tobytes().hex())"
    )

    def said(code: str, target: str, name: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code, tmp_path, name],
            env={**os.environ, "HETNN_TARGET": target},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    answers = set()
    for maker in ("amx", "avx512"):
        said(compiles, maker, f"{maker}.hetnn")
        answers |= {said(runs, runner, f"{maker}.hetnn") for runner in ("amx", "avx512", "avx2")}
    assert len(answers) == 1
