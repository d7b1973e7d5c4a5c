"""The adapter by which Model Explorer opens a .hetnn file. Model Explorer imports it; nothing of hetnn does."""

from __future__ import annotations

from typing import Any, ClassVar

from dacite import from_dict
from model_explorer import Adapter, AdapterMetadata, ModelExplorerGraphs, graph_builder

from hetnn.executable import load
from hetnn.explore.graphs import graphs_of


class HetnnAdapter(Adapter):  # type: ignore[misc]
    """Files of executables: the graph by module, with device, times and reasons of each node."""

    metadata: ClassVar[Any] = AdapterMetadata(
        id="hetnn",
        name="hetnn",
        description="Executables of hetnn: what runs where, why, and what it takes.",
        fileExts=["hetnn"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """The graphs of the file at `model_path`. InvalidModel where it is none."""
        report = load(model_path, threads=1).report(format="dict")
        return {"graphs": [from_dict(graph_builder.Graph, graph) for graph in graphs_of(report)]}
