"""How many threads a run has where none are asked for: what the environment, or torch beside it, says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

GRAPH = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\\n  %y = relu(%x) : f32[4]\\n}"
ALL = len(os.sched_getaffinity(0))


def threads(before: str = "", options: str = "", **environment: str) -> int:
    """Of an executable compiled in a process of its own, which runs `before` first."""
    code = f'{before}\nimport hetnn\nprint(hetnn.compile("{GRAPH}", "cpu"{options}).threads)'
    kept = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "HETNN_CPUS")}
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
