"""How long hetnn.compile takes and how much memory it needs: a row a network and target, each in a process of its own.

    python benchmarks/compile.py [--targets cpu,cpu+relu-only] [--models resnet50,bert] [--repeat 3]

The exported program is given and everything is imported: a tiny network was compiled before. `peak` is what compiling
adds to the process at most and `kept` what remains when the executable stands, beside the size of the saved file.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python")]

import torch  # noqa: E402

import hetnn  # noqa: E402
from models import nets  # noqa: E402


def bert() -> nets.Case:
    torch.manual_seed(7)
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072}
    return nets.Encoder(**sizes).eval(), (torch.randint(0, 30522, (1, 128)), torch.ones(1, 128, dtype=torch.int64))


MODELS: dict[str, Callable[[], nets.Case]] = {
    "resnet50": lambda: nets.vision("resnet50"),
    "densenet121": lambda: nets.vision("densenet121"),
    "maxvit": lambda: nets.vision("maxvit_t"),
    "bert": bert,
}


def memory_mb(row: str) -> float:
    """Of this process, as the system sees it: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(row))


def measure(name: str, target: str, repeat: int) -> None:
    module, inputs = MODELS[name]()
    program = torch.export.export(module, inputs, strict=False)
    hetnn.compile(torch.export.export(*nets.tiny(), strict=False))
    took = []
    for k in range(repeat):
        gc.collect()
        before = memory_mb("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        began = time.perf_counter()
        executable = hetnn.compile(program, target=target)
        took.append(time.perf_counter() - began)
        if k == 0:  # later ones find memory that the first one left
            peak, kept = memory_mb("VmHWM") - before, memory_mb("VmRSS") - before
            with tempfile.TemporaryDirectory() as folder:
                executable.save(Path(folder) / "model.hetnn")
                size = (Path(folder) / "model.hetnn").stat().st_size / 1e6
        del executable
    print(f"{name:14}{target:16}{min(took):8.2f}{took[0]:8.2f}{size:9.1f}{peak:9.0f}{kept:9.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="cpu,cpu+relu-only")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    print(
        f"{'network':14}{'target':16}{'best s':>8}{'first s':>8}{'file MB':>9}{'peak MB':>9}{'kept MB':>9}", flush=True
    )
    for name in asked.models.split(","):
        for target in asked.targets.split(","):
            process = multiprocessing.get_context("spawn").Process(target=measure, args=(name, target, asked.repeat))
            process.start()
            process.join()
            if process.exitcode:
                sys.exit(f"{name} on {target} ended with code {process.exitcode}.")


if __name__ == "__main__":
    main()
