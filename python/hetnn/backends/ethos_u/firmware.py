"""What firmware for an Ethos-U needs of an executable: command streams, weights, tables in C, and a page about them."""

from __future__ import annotations

import json
import math
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from hetnn import _runtime
from hetnn.backends.code import taken_apart
from hetnn.backends.ethos_u.backend import KIND
from hetnn.backends.ethos_u.code import REPORT, arrays_of
from hetnn.errors import InvalidModel

# Of the folder; those of the C sources are the same for every network.
_SOURCES = ("hetnn_ethos.h", "hetnn_ethos.c", "hetnn_ethos_device.c")


class Step(NamedTuple):
    """A subprogram: where it runs, and what it reads and writes. `arrays` is an Ethos-U's code."""

    name: str
    device: str
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    arrays: dict[str, Any] | None


def steps_of(image: bytes, called: str) -> list[Step]:
    """The subprograms of a file in the order that they run. InvalidModel where none is for an Ethos-U, or sizes are
    open."""
    program = json.loads(_runtime.take_apart(image, called)["program"])
    buffers = program["buffers"]
    steps = []
    for row in program["subprograms"]:
        own = row["kind"] == KIND
        code = arrays_of(taken_apart(row["device"], bytes.fromhex(row["code_hex"]))[2]) if own else None
        inputs, outputs = ([buffers[k] for k in row[side]] for side in ("inputs", "outputs"))
        steps.append(Step(row["name"], row["device"], inputs, outputs, code))
    if not any(step.arrays for step in steps):
        raise InvalidModel(f"{called} has no part for an Ethos-U. Compile the model for one, as cpu+ethos-u55-256.")
    return steps


def write(image: bytes, called: str, folder: Path) -> dict[str, Any]:
    """Writes the folder's files. What it tells: `files` with their bytes, `steps` in order, `scratch_bytes` and
    `fast_bytes` that all steps can share, `cycles` that Vela predicts."""
    steps = steps_of(image, called)
    own = [step for step in steps if step.arrays is not None]
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, bytes] = {}
    for k, step in enumerate(own):
        assert step.arrays is not None
        files[f"commands_{k}.bin"] = step.arrays["cmd_data"].tobytes()
        files[f"weights_{k}.bin"] = step.arrays["weight_data"].tobytes()
    files["network.h"] = _header(steps, own).encode()
    files["network.c"] = _tables(own).encode()
    files["data.S"] = _data(len(own)).encode()
    for name in _SOURCES:
        files[name] = resources.files(__package__).joinpath(f"sources/{name}").read_bytes()
    mixed = len(own) < len(steps)
    if mixed:
        files["network.hetnn"] = image
    else:
        del files["hetnn_ethos_device.c"]
    files["README.md"] = _page(steps, own, mixed).encode()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return {
        "folder": str(folder),
        "files": {name: len(content) for name, content in files.items()},
        "steps": [{"name": step.name, "device": step.device} for step in steps],
        "scratch_bytes": _most(own, "scratch_size"),
        "fast_bytes": _most(own, "scratch_fast_size"),
        "cycles": sum(_report(step)["cycles"] for step in own),
    }


def _report(step: Step) -> dict[str, Any]:
    assert step.arrays is not None
    told: dict[str, Any] = json.loads(step.arrays[REPORT].tobytes())
    return told


def _most(own: list[Step], key: str) -> int:
    return max(int(step.arrays[key]) for step in own if step.arrays is not None)


def _tensors(step: Step, side: str) -> list[tuple[str, int, int, int]]:
    """Name, region, offset and bytes of each input or output."""
    assert step.arrays is not None
    regions, offsets, sizes, shapes = (
        step.arrays[f"{side}_{key}"] for key in ("region", "offset", "elem_size", "shape")
    )
    ports = step.inputs if side == "input" else step.outputs
    return [
        (port["name"], int(regions[k]), int(offsets[k]), int(sizes[k]) * math.prod(int(n) for n in shapes[k]))
        for k, port in enumerate(ports)
    ]


def _header(steps: list[Step], own: list[Step]) -> str:
    order = "\n".join(f" *   {k}: {step.name} on {step.device}" for k, step in enumerate(steps))
    names = "\n".join(f"#define NETWORK_STEP_{k} {k} /* {step.name} */" for k, step in enumerate(own))
    return f"""/* The parts of a network that an Ethos-U runs. Subprograms in order:
{order}
 */
#ifndef NETWORK_H
#define NETWORK_H
#include "hetnn_ethos.h"

#define NETWORK_STEPS {len(own)}
/* Memory that every step can use in turn, aligned to 16 bytes. */
#define NETWORK_SCRATCH_BYTES {_most(own, "scratch_size")}
#define NETWORK_FAST_BYTES {_most(own, "scratch_fast_size")}
/* Whether images that pass between subprograms lie channels last for the steps. */
#define NETWORK_IMAGES_LAST {int(all("images_last" in _report(step) for step in own))}
{names}

extern const hetnn_ethos_step network_steps[NETWORK_STEPS];

#endif
"""


def _tables(own: list[Step]) -> str:
    parts = ['#include "network.h"\n']
    rows = []
    for k, step in enumerate(own):
        assert step.arrays is not None
        arrays = step.arrays
        for side in ("input", "output"):
            tensors = "".join(
                f"  {{{json.dumps(name)}, {region}, {offset}, {size}}},\n"
                for name, region, offset, size in _tensors(step, side)
            )
            parts.append(f"static const hetnn_ethos_tensor {side}s_{k}[] = {{\n{tensors}}};\n")
        for kind in ("commands", "weights"):
            parts.append(f"extern const uint8_t network_{kind}_{k}[];\n")
        regions = ", ".join(str(int(arrays[key])) for key in ("weight_region", "scratch_region", "scratch_fast_region"))
        memory = ", ".join(str(int(arrays[key])) for key in ("scratch_size", "scratch_fast_size"))
        blobs = f"network_commands_{k}, {len(arrays['cmd_data'])}, network_weights_{k}, {len(arrays['weight_data'])}"
        ports = f"inputs_{k}, {len(step.inputs)}, outputs_{k}, {len(step.outputs)}"
        rows.append(f"  {{{json.dumps(step.name)}, {blobs}, {memory},\n   {{{regions}}}, {ports}}},\n")
    return "".join(parts) + f"const hetnn_ethos_step network_steps[NETWORK_STEPS] = {{\n{''.join(rows)}}};\n"


def _data(count: int) -> str:
    lines = ["/* Command streams and weights as they lie in the files beside this one. */", "  .section .rodata"]
    for k in range(count):
        for kind in ("commands", "weights"):
            name = f"network_{kind}_{k}"
            lines += [f"  .balign 16\n  .global {name}\n{name}:", f'  .incbin "{kind}_{k}.bin"']
    return "\n".join([*lines, '  .section .note.GNU-stack,"",%progbits', ""])


def _page(steps: list[Step], own: list[Step], mixed: bool) -> str:
    rows = "\n".join(
        f"| {k} | {step.name} | {step.device} | {_ports(step.inputs)} | {_ports(step.outputs)} |"
        for k, step in enumerate(steps)
    )
    how = _MIXED if mixed else _WHOLE
    scratch, fast = _most(own, "scratch_size"), _most(own, "scratch_fast_size")
    return f"""# A network for an Ethos-U

Subprograms, in the order that they run:

| | name | on | reads | writes |
|---|---|---|---|---|
{rows}

`network.h` has sizes, `network.c` where inputs and outputs lie, `data.S` brings in command streams and weights.
All steps share {scratch:,} bytes of scratch memory and {fast:,} of fast memory.
{how}"""


def _ports(ports: list[dict[str, Any]]) -> str:
    return ", ".join(f"{port['name']}: {port['dtype']}{port['shape']}".replace(" ", "") for port in ports)


_WHOLE = """
The driver is Arm's `ethos-u-core-driver` (`ethosu_driver.h`). Everything is in the processor's parts:

```c
#include "network.h"
static uint8_t scratch[NETWORK_SCRATCH_BYTES] __attribute__((aligned(16)));
static uint8_t fast[NETWORK_FAST_BYTES + 1] __attribute__((aligned(16)));

int classify(struct ethosu_driver* driver, const int8_t* image, int8_t* scores) {
  const hetnn_ethos_step* step = &network_steps[0];
  hetnn_ethos_write(step, scratch, fast, 0, image);
  if (hetnn_ethos_invoke(driver, step, scratch, fast) != 0) return -1;
  hetnn_ethos_read(step, scratch, fast, 0, scores);
  return 0;
}
```

```sh
arm-none-eabi-gcc -mcpu=cortex-m55 -Os -I. -Iethos-u-core-driver/include -c network.c hetnn_ethos.c data.S
```
"""

_MIXED = """
The other parts run in hetnn's own runtime library, which reads `network.hetnn` and calls the driver for the steps of
the Ethos-U: `hetnn_ethos_device.c` is that device, for `hetnn_register_device` of `hetnn/hetnn.h`. The driver is Arm's
`ethos-u-core-driver` (`ethosu_driver.h`), or on Linux what offers its `ethosu_invoke_v3`.

```c
#include "network.h"
hetnn_ethos_register(driver, scratch, fast);
hetnn_load("network.hetnn", NULL, &executable);
hetnn_run(executable, NULL, inputs, input_count, outputs, output_count);
```

```sh
aarch64-linux-gnu-gcc -O2 -I. -Iethos-u-core-driver/include -IHETNN/include -c network.c hetnn_ethos.c \\
  hetnn_ethos_device.c data.S      # link them with libhetnn_runtime of that machine
```
"""
