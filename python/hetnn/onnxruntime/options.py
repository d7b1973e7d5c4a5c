"""What a session is made with, and what it says of its model."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class GraphOptimizationLevel(IntEnum):
    """Taken and without effect: hetnn always optimizes."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Taken and without effect: subgraphs of different devices run at once where none waits for the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


@dataclass
class SessionOptions:
    """`intra_op_num_threads` are the CPU's threads, 0 for as many as there are; others change nothing."""

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: int = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: int = ExecutionMode.ORT_SEQUENTIAL
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    optimized_model_filepath: str = ""
    profile_file_prefix: str = ""
    use_deterministic_compute: bool = False
    config_entries: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept, and without effect."""
        self.config_entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """What add_session_config_entry kept."""
        return self.config_entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes a size that the model leaves open, as `fix` of hetnn.compile."""
        self.sizes[name] = size


@dataclass
class RunOptions:
    """Taken and without effect."""

    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    terminate: bool = False
    only_execute_path_to_fetches: bool = False
    config_entries: dict[str, str] = field(default_factory=dict)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Kept, and without effect."""
        self.config_entries[key] = value


@dataclass(frozen=True)
class NodeArg:
    """An input or output: its name, a shape of ints and of names of open sizes, and a type such as "tensor(float)"."""

    name: str
    shape: list[int | str | None]
    type: str


@dataclass
class ModelMetadata:
    """What the file says of itself."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)
