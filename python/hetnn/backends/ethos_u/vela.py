"""Arm's compiler Vela, asked in a process of its own: a network in, command stream, weights and a report out."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from hetnn.errors import InvalidModel, Unavailable, Unsupported

PACKAGE = "ethos-u-vela"
_SPEC_KEYS = ("system_config", "memory_mode", "arena_bytes", "config", "optimise")
_LIMIT_S = 600


@cache
def accelerators() -> dict[str, dict[str, Any]]:
    """The data of each accelerator by its name, as u55-256: Vela's own defaults for systems around it."""
    rows: dict[str, dict[str, Any]] = json.loads(
        resources.files(__package__).joinpath("accelerators.json").read_text(encoding="utf-8")
    )
    return rows


def version() -> str:
    """Vela's, or none where it is not installed."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return "none"


def require(device: str) -> None:
    """Unavailable where Vela is not installed."""
    if importlib.util.find_spec("ethosu") is None:
        raise Unavailable(f"device '{device}' needs Arm's compiler Vela. Run pip install 'hetnn[ethos-u]'.")


@dataclass(frozen=True)
class Accelerator:
    """An accelerator in its system: its row of accelerators.json, altered by the spec of a target."""

    name: str
    family: str
    macs: int
    cores: int
    system_config: str
    memory_mode: str
    arena_bytes: int
    config: str = ""
    optimise: str = "Performance"

    @classmethod
    def of(cls, device: str, spec: Mapping[str, Any]) -> Accelerator:
        """InvalidModel, naming the accelerators, for one that is none of them."""
        rows, variant = accelerators(), str(spec.get("variant", ""))
        if variant not in rows:
            raise InvalidModel(
                f"device '{device}': there is no Ethos-U '{variant}'; there are {', '.join(rows)}. Name one of them, "
                "as ethos-u55-256."
            )
        told = {key: spec[key] for key in _SPEC_KEYS if key in spec}
        return cls(variant, **{**rows[variant], **told})

    @property
    def chains(self) -> bool:
        """Whether operators on elements that follow each other are one visit to memory."""
        return self.family == "EthosU85"


@dataclass(frozen=True)
class Compiled:
    """What Vela made: the bytes of its raw output (.npz) or of a TFLite file, and its report."""

    data: bytes
    report: dict[str, Any]


@lru_cache(maxsize=4)  # a plan asks for the times of what is compiled next
def compile_network(network: bytes, accelerator: Accelerator, tflite: bool = False) -> Compiled:
    """A TOSA file through Vela, or a TFLite file, of which operators may stay for a CPU.

    Unsupported with Vela's own text where it refuses, and where it ends with a fault or not at all.
    """
    kind = "TFLite" if tflite else "Raw"
    request = {
        "family": accelerator.family,
        "format": "TFLITE" if tflite else "TOSA",
        "system": _system(accelerator),
        "options": _options(accelerator, kind),
        "config": accelerator.config,
        "output": kind,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "request.json").write_text(json.dumps(request))
        (folder / "network").write_bytes(network)
        command = [sys.executable, str(Path(__file__).with_name("vela_process.py")), name]
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            done = subprocess.run(command, env=paths, capture_output=True, text=True, timeout=_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise Unsupported(f"Vela was not done after {_LIMIT_S} s") from error
        if (folder / "error.txt").exists():
            raise Unsupported(f"Vela refuses it: {_told((folder / 'error.txt').read_text())}")
        if done.returncode != 0:
            raise Unsupported(f"Vela ended with {done.returncode}: {_told(done.stderr)}")
        data = (folder / ("vela.tflite" if tflite else "vela.npz")).read_bytes()
        return Compiled(data, json.loads((folder / "report.json").read_text()))


def _told(text: str) -> str:
    """What Vela says without the lines of its log."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-3:]) or "without a word"


def _system(accelerator: Accelerator) -> str:
    return (
        f"[architecture]\nmacs={accelerator.macs}\ncores={accelerator.cores}\n"
        f"[vela]\nsystem_config_name={accelerator.system_config}\nmemory_mode_name={accelerator.memory_mode}\n"
    )


def _options(accelerator: Accelerator, output: str) -> str:
    """As Vela's command line states them where it is told nothing else."""
    return (
        f"\n[compiler]\nenable_db=true\noutput_format={output}\ncop_format=COP1\n"
        f"\n[scheduler]\noptimize={accelerator.optimise}\narena_size_limit={accelerator.arena_bytes}\n"
        "disable_feature=\ncpu_tensor_alignment=16\ntensor_allocator=HillClimb\n"
        "\n[graph]\nsoftmax_int16_neg_exp_range=10.0\n"
    )


@cache
def cycles_per_us(accelerator: Accelerator) -> float:
    """The clock of the system: that of its section in Vela's file."""
    from configparser import ConfigParser

    sections = ConfigParser()
    sections.read(accelerator.config or _own_systems())
    return sections.getfloat(f"System_Config.{accelerator.system_config}", "core_clock") / 1e6


def _own_systems() -> Path:
    spec = importlib.util.find_spec("ethosu")
    assert spec is not None
    (folder,) = spec.submodule_search_locations or [""]
    return Path(folder) / "config_files" / "Arm" / "vela.ini"
