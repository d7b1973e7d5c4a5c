"""Model Explorer's files, its adapter, and its server on a saved file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import hetnn
from hetnn.cli import main
from hetnn.cli.answer import UNSUPPORTED
from hetnn.explore.graphs import graphs_of, node_data_of
from inside import nets


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explore") / "net.hetnn"
    hetnn.compile(nets.residual(), "cpu+relu-only", args=(torch.zeros(1, 3, 14, 14),), rewrite="off").save(path)
    return path


def attrs(node: dict[str, Any]) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in node["attrs"]}


def test_graphs_have_modules_reasons_and_edges(saved: Path) -> None:
    report = hetnn.load(saved).report(format="dict")
    (graph,) = graphs_of(report)
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert list(nodes) == [row["node"] for row in report["graph"]]
    assert nodes["prelu"]["namespace"] == "layer1/0/act"
    assert attrs(nodes["prelu"])["not on relu-only"] == "relu-only has no operator prelu"
    assert [edge["sourceNodeId"] for edge in nodes["prelu"]["incomingEdges"]] == [
        name for row in report["graph"] if row["node"] == "prelu" for name in row["inputs"]
    ]
    assert graph["groupNodeAttributes"][""]["target"] == "cpu+relu-only"
    figures = node_data_of(report)
    assert "predicted us" in figures
    assert "measured us" not in figures
    results = figures["predicted us"]["main"]["results"]
    assert results["prelu"]["value"] == next(row["predicted_us"] for row in report["graph"] if row["node"] == "prelu")


def test_what_a_loop_repeats_is_a_graph_that_its_node_leads_to() -> None:
    class Loop(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def more(k: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
                return k < 3

            def body(k: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                return k + 1, torch.relu(x) * 2

            return torch.while_loop(more, body, (torch.tensor(0), x))[1]

    report = hetnn.plan(Loop(), args=(torch.zeros(2, 3),)).report("dict")
    graphs = graphs_of(report)
    assert len(graphs) >= 2
    (loop,) = [node for node in graphs[0]["nodes"] if node["subgraphIds"]]
    assert loop["subgraphIds"] == [graphs[1]["id"]]


def test_the_adapter_opens_a_saved_file(saved: Path) -> None:
    from model_explorer.extension_manager import ExtensionManager

    manager = ExtensionManager(["hetnn.explore"])
    manager.load_extensions()
    command = {"cmdId": "convert", "modelPath": str(saved), "settings": {}, "deleteAfterConversion": False}
    (graph,) = manager.run_cmd({**command, "extensionId": "hetnn"})["graphs"]
    assert {node["id"] for node in graph["nodes"]} >= {"prelu", "prelu_1"}
    assert any("hetnn" in (one.get("fileExts") or []) for one in manager.get_extensions_metadata())


def test_files_for_an_explorer_elsewhere(saved: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hetnn", "explore", str(saved), "--run", "-o", str(tmp_path / "out"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert json.loads(Path(answer["graph"]).read_text())["graphs"][0]["id"] == "main"
    names = [Path(path).name for path in answer["node_data"]]
    assert names[-2:] == ["net.predicted_us.json", "net.measured_us.json"]


def test_the_command_gives_the_server_graph_and_figures(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import model_explorer

    seen: list[Any] = []

    def visualize(config: Any, port: int, no_open_in_browser: bool) -> None:
        paths = [config.model_sources[0]["url"], *config.node_data_sources]
        seen.append([json.loads(Path(path).read_text()) for path in paths])
        seen.append((port, no_open_in_browser))

    monkeypatch.setattr(model_explorer, "visualize_from_config", visualize)
    assert main(["explore", str(saved), "--no-browser", "--port", "8123", "--quiet"]) == 0
    files, asked = seen
    assert asked == (8123, True)
    assert files[0]["graphs"][0]["id"] == "main"
    assert [next(iter(data.values()))["name"] for data in files[1:]][-1] == "predicted us"
    monkeypatch.setitem(sys.modules, "model_explorer", None)
    assert main(["explore", str(saved)]) == UNSUPPORTED
