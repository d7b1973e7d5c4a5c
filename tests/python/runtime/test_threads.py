"""How many threads a run has where none are asked for: what the environment, or torch beside it, says."""

from __future__ import annotations

import os
import subprocess
import sys

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
