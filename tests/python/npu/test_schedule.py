"""Schedules: printed, taken back, edited by hand, and refused where they are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn import _core
from npu.programs import export, target


class Bottlenecks(nn.Module):
    """Inverted residuals, a join of two branches and a head: cascades, values that stay, and tiles."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.wide = nn.Conv2d(16, 64, 1)
        self.depthwise = nn.Conv2d(64, 64, 3, padding=1, groups=64)
        self.narrow = nn.Conv2d(64, 16, 1)
        self.branches = nn.ModuleList([nn.Conv2d(16, 24, 1), nn.Conv2d(16, 40, 3, padding=1)])
        self.head = nn.Linear(64, 300)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.stem(x))
        x = x + self.narrow(torch.relu(self.depthwise(torch.relu(self.wide(x)))))
        x = torch.cat([torch.relu(branch(x)) for branch in self.branches], 1)
        out: Tensor = self.head(nn.functional.max_pool2d(x, 2).mean((2, 3)))
        return out


SMALL = {"bytes": 48 << 10}


def compiled(folder: Path, schedule: str | None = None, size: int = 48, **changes: Any) -> tuple[hetnn.Executable, str]:
    torch.manual_seed(3)
    module, x = Bottlenecks(), torch.randn(2, 3, size, size)
    changes.setdefault("sram", SMALL)
    executable = hetnn.compile(export(module, x), target(**changes), strategy="take-all", schedule=schedule)
    path = str(folder / "model.hetnn")
    executable.save(path)
    with torch.no_grad():
        torch.testing.assert_close(executable(x), module(x), rtol=1e-4, atol=1e-4)
    return executable, path


@pytest.mark.parametrize("kib", [16, 48, 256, 4096])
def test_what_is_printed_compiles_to_the_same_words(kib: int, tmp_path: Path) -> None:
    _, path = compiled(tmp_path, sram={"bytes": kib << 10})
    printed, words = _core.schedules(path), _core.command_streams(path)[0]["text"]
    _, path = compiled(tmp_path, printed, sram={"bytes": kib << 10})
    assert _core.command_streams(path)[0]["text"] == words
    assert _core.schedules(path) == printed


@pytest.mark.parametrize("kib", [16, 48, 256, 4096])
def test_words_reach_no_further_than_the_schedule_says(kib: int, tmp_path: Path) -> None:
    """Nor much less far: the last buffer is used from its first byte on."""
    _, path = compiled(tmp_path, sram={"bytes": kib << 10})
    places = re.findall(r"(scratchpad )?at=(\d+) bytes=(\d+)(?: depth=(\d+))?", _core.schedules(path))
    kept = [(int(at), int(size) * int(depth or 1)) for home, at, size, depth in places if home or depth]
    peak, last = max(at + size for at, size in kept), max(kept)[0]
    (subgraph,) = _core.simulate_model(path)["subgraphs"]
    assert last < max(layer["sram_peak_bytes"] for layer in subgraph["layers"]) <= peak <= kib << 10


def test_values_stay_and_layers_advance_together(tmp_path: Path) -> None:
    _, path = compiled(tmp_path, sram={"bytes": 256 << 10})
    (subgraph,) = _core.simulate_model(path)["subgraphs"]
    assert any(row["cascade"] is not None for row in subgraph["layers"])
    assert all(row["tile"] for row in subgraph["layers"])
    moved = sum(row["dma_bytes"] for row in subgraph["layers"])
    weights = sum(row["weight_bytes"] for row in subgraph["layers"])
    ports = 4 * (2 * 3 * 48 * 48 + 2 * 300)
    # Nothing between the layers goes through the memory.
    assert moved == weights + ports
    assert subgraph["lower_bound_cycles"] <= subgraph["total_cycles"]


def test_one_depth_changed_by_hand_changes_the_cycles_as_predicted(tmp_path: Path) -> None:
    torch.manual_seed(3)
    module, x = nn.Conv2d(128, 128, 3, padding=1).eval(), torch.randn(1, 128, 28, 28)
    spec = target(sram={"bytes": 256 << 10})

    def cycles(schedule: str | None) -> int:
        executable = hetnn.compile(export(module, x), spec, strategy="take-all", schedule=schedule)
        executable.save(tmp_path / "model.hetnn")
        with torch.no_grad():
            torch.testing.assert_close(executable(x), module(x), rtol=1e-4, atol=1e-4)
        # Loading counts the stream's cycles and refuses a file that states others.
        out: int = _core.simulate_model(str(tmp_path / "model.hetnn"))["total_cycles"]
        return out

    before = cycles(None)
    printed = _core.schedules(str(tmp_path / "model.hetnn"))
    deep = [line for line in printed.splitlines() if re.match(r"  (input|output|parameters) .* depth=2$", line)]
    assert deep
    assert max(cycles(printed.replace(line, line[:-1] + "1")) for line in deep) > 1.05 * before


def test_without_places_all_are_found_anew(tmp_path: Path) -> None:
    _, path = compiled(tmp_path)
    printed = _core.schedules(path)
    compiled(tmp_path, re.sub(r" at=\d+", "", printed))


def edited(printed: str, pattern: str, to: str) -> str:
    out, count = re.subn(pattern, to, printed, count=1, flags=re.MULTILINE)
    assert count == 1, pattern
    return out


@pytest.mark.parametrize(
    ("pattern", "to", "message"),
    [
        (r'^subgraph ".*"', 'subgraph "gpu 7"', "no subgraph 'gpu 7'"),
        (r'^  layer "[^"]*"\n', "", "comes before|has no layer"),
        (r'(^  layer "[^"]*"\n)', r"\1\1", "twice"),
        (r'^  layer "[^"]*"', '  layer "nobody"', 'no layer "nobody"'),
        (r"^cascade rows=\d+", "cascade rows=0", "rows is 0; it must be at least 1"),
        (r"^(  ring .*) depth=\d+", r"\1 depth=0", "depth is 0"),
        (r"^(  ring .*) depth=\d+", r"\1 depth=1", "depth of at least"),
        (r"^(  (?:ring|parameters) .*) bytes=\d+", r"\1 bytes=7", "takes .* bytes; got 7"),
        (r"^(  (?:ring|parameters) .*) at=\d+", r"\1 at=49000", "of the scratchpad, which has 49152"),
        (r"^(  ring [^\n]*at=)(\d+)([^\n]*\n  ring [^\n]*at=)\d+", r"\1\2\3\2", "overlap while layer"),
        (r"^cascade", "waterfall", "'waterfall' is none of"),
        (r"^cascade rows=\d+", "cascade rows=many", "must be a key and an integer"),
    ],
)
def test_what_is_wrong_is_named(pattern: str, to: str, message: str, tmp_path: Path) -> None:
    _, path = compiled(tmp_path)
    wrong = edited(_core.schedules(path), pattern, to)
    with pytest.raises(hetnn.Error, match=message):
        compiled(tmp_path, wrong)


def test_the_example_of_the_page_compiles_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "npu.md").read_text(encoding="utf-8")
    (source,), (schedule,) = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "text"))
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(3)
    made: dict[str, Any] = {}
    exec(source, made)
    told = hetnn.compile(made["layers"], made["sheet"], args=(made["image"],), strategy="take-all", schedule=schedule)
    told.save("told.hetnn")
    assert _core.schedules("told.hetnn") == schedule
    torch.testing.assert_close(told(made["image"]), made["executable"](made["image"]), rtol=1e-5, atol=1e-5)


def bare(schedule: str) -> str:
    """Without buffers, which are then made as large as they must be."""
    return re.sub(r"^  (?!layer).*\n", "", schedule, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: text[: text.rindex("\ntiled") + 1],
            r"schedule: it leaves out linear 'head'; it has 10 of 11 layers",
        ),
        (
            lambda text: edited(text, r'^  layer "conv2d"\n((?:(?!  layer).*\n)*)(  layer "conv2d_1"\n)', r"\2\1"),
            r'line \d+: the layer "conv2d" comes before "conv2d_1"',
        ),
        (
            lambda text: edited(text, r"^tiled rows=\d+(?=.*\n  layer .linear)", "tiled rows=3000"),
            r"linear 'head' has 2 rows, 1 columns, 300 filters and 64 channels; the tile is larger",
        ),
    ],
    ids=["left out", "reordered", "too large a tile"],
)
def test_work_is_whole_and_in_order(change: Callable[[str], str], message: str, tmp_path: Path) -> None:
    _, path = compiled(tmp_path)
    with pytest.raises(hetnn.InvalidModel, match=message):
        compiled(tmp_path, change(bare(_core.schedules(path))))


def test_a_cascade_that_the_scratchpad_does_not_hold_is_named(tmp_path: Path) -> None:
    """The first layers in one cascade, by so many rows a step that nothing has room."""
    _, path = compiled(tmp_path)
    lines = re.sub(r"^value.*\n", "", bare(_core.schedules(path)), flags=re.MULTILINE).splitlines(keepends=True)
    end = lines.index('  layer "conv2d_3"\n')
    first = [line for line in lines[1:end] if line.startswith("  layer")]
    longer = "".join([lines[0], "cascade rows=24 ahead=1\n", *first, *lines[end:]])
    with pytest.raises(hetnn.DoesNotFit, match=r'layer "conv2d" .* take \d+ bytes of scratchpad; vpu has 49152'):
        compiled(tmp_path, longer)


def test_a_scratchpad_of_64_bytes_is_a_reason_with_layer_figure_and_limit() -> None:
    torch.manual_seed(3)
    exported = export(Bottlenecks(), torch.randn(1, 3, 16, 16))
    with pytest.raises(
        hetnn.Unsupported, match="conv2d 'stem': its smallest tile takes 320 bytes of scratchpad; vpu has 64"
    ):
        hetnn.compile(exported, target(sram={"bytes": 64}), strict="vpu")


def test_a_file_that_is_none_is_named() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"neither the text .* nor a file"):
        hetnn.compile(export(nn.ReLU(), torch.randn(1, 4)), schedule="no/such/file")


def test_altered_schedules_are_refused_or_right(tmp_path: Path) -> None:
    """Figures drawn anew: a typed error, or a program whose stream verifies and computes the same."""
    _, path = compiled(tmp_path)
    printed = _core.schedules(path)
    rng = np.random.default_rng(11)
    figures = [match.span(1) for match in re.finditer(r"=(\d+)", printed)]
    refused = 0
    for _ in range(60):
        begin, end = figures[rng.integers(len(figures))]
        value = int(printed[begin:end])
        other = int(rng.choice([0, 1, value * 2, max(value - 64, 0), value + 64, int(rng.integers(1 << 16))]))
        try:
            compiled(tmp_path, printed[:begin] + str(other) + printed[end:])
        except hetnn.Error:
            refused += 1
    assert 0 < refused < 60
