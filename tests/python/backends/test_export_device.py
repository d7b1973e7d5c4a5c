"""`hetnn export-device`: the folder's C files compile, sizes are those of the code, and steps run in order."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from backends.integer_networks import RELU, Net
from hetnn.backends.ethos_u import codes

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")

# Stands for Arm's driver: what it is called with is printed, with where inputs begin; each output byte is the
# step's number, and 10 more in every fourth.
DRIVER = """
#include <stddef.h>
#include <stdint.h>
struct ethosu_driver;
int ethosu_invoke_v3(struct ethosu_driver* driver, const void* commands, const int bytes, uint64_t* const bases,
                     const size_t* sizes, const int count, void* user);
"""
INVOKED = """
#include <stdio.h>
#include "ethosu_driver.h"
#include "network.h"
int ethosu_invoke_v3(struct ethosu_driver* driver, const void* commands, const int bytes, uint64_t* const bases,
                     const size_t* sizes, const int count, void* user) {
  int k, j;
  uint32_t i;
  (void)driver, (void)user;
  printf("%.4s %d", (const char*)commands, bytes);
  for (k = 0; k < count; ++k) printf(" %zu", sizes[k]);
  printf("\\n");
  for (k = 0; k < NETWORK_STEPS; ++k) {
    const hetnn_ethos_step* step = &network_steps[k];
    if (step->commands != commands) continue;
    for (j = 0; j < step->input_count; ++j) {
      const int8_t* x = (const int8_t*)(uintptr_t)bases[step->inputs[j].region] + step->inputs[j].offset_bytes;
      printf("in %d %d %d %d\\n", x[0], x[1], x[2], x[3]);
    }
    for (j = 0; j < step->output_count; ++j) {
      uint8_t* y = (uint8_t*)(uintptr_t)bases[step->outputs[j].region] + step->outputs[j].offset_bytes;
      for (i = 0; i < step->outputs[j].bytes; ++i) y[i] = (uint8_t)(7 + k + (i % 4 == 1 ? 10 : 0));
    }
  }
  return 0;
}
static uint8_t scratch[NETWORK_SCRATCH_BYTES + 16], fast[NETWORK_FAST_BYTES + 16];
"""
WHOLE = """
int main(void) {
  static int8_t x[1 << 16], y[1 << 16];
  const hetnn_ethos_step* step = &network_steps[0];
  hetnn_ethos_write(step, scratch, fast, 0, x);
  if (hetnn_ethos_invoke(NULL, step, scratch, fast)) return 1;
  hetnn_ethos_read(step, scratch, fast, 0, y);
  printf("%d %u %u %zu %d\\n", NETWORK_STEPS, step->inputs[0].bytes, step->outputs[0].bytes, step->weight_bytes, y[0]);
  return 0;
}
"""
MIXED = """
#include <hetnn/hetnn.h>
int main(int argc, char** argv) {
  hetnn_executable* executable = NULL;
  static float x[1 << 16];
  int k;
  hetnn_port port = {sizeof port, NULL, HETNN_F32, 0, NULL};
  hetnn_tensor in = {sizeof in, x, HETNN_F32, 0, NULL}, out = {sizeof out, NULL, HETNN_F32, 0, NULL};
  if (argc != 2 || hetnn_ethos_register(NULL, scratch, fast) || hetnn_load(argv[1], NULL, &executable)) goto failed;
  hetnn_input(executable, 0, &port);
  in.rank = port.rank, in.dims = port.dims;
  for (k = 0; k < 4 * 36; ++k) x[k] = k * 0.05f;
  if (hetnn_run(executable, NULL, &in, 1, &out, 1)) goto failed;
  for (k = 0; k < 4 * 9; ++k) printf("%g ", ((float*)out.data)[k]);
  return 0;
failed:
  printf("%s\\n", hetnn_error_message());
  return 1;
}
"""


def command(*words: str) -> str:
    """What a command prints. AssertionError with what it says where it fails."""
    done = subprocess.run([sys.executable, "-m", "hetnn", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported(model: Any, folder: Path) -> tuple[dict[str, Any], hetnn.Executable]:
    exe = hetnn.compile(model, "cpu+ethos-u55-256", strategy="take-all")
    exe.save(folder / "net.hetnn")
    told = json.loads(command("export-device", str(folder / "net.hetnn"), str(folder / "out"), "--json"))
    return told, exe


def build(folder: Path, main: str, sources: list[str], *flags: str) -> Path:
    (folder / "out" / "ethosu_driver.h").write_text(DRIVER)
    (folder / "out" / "main.c").write_text(INVOKED + main)
    strict = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I."]
    done = subprocess.run(
        [*strict, *sources, "main.c", "-o", "run", *flags], cwd=folder / "out", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "out" / "run"


def test_a_network_that_is_all_there(tmp_path: Path) -> None:
    n = Net(1)
    x = n.conv(n.start([1, 24, 20, 3]), 8, 3, 2, RELU)
    told, exe = exported(n.finish(n.dense(n.mean(x), 10)), tmp_path)
    (code,) = codes(exe).values()
    program = build(tmp_path, WHOLE, ["network.c", "hetnn_ethos.c", "data.S"])
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    sizes = [len(code["weight_data"]), int(code["scratch_size"])]
    assert lines[0].split()[:4] == ["COP1", str(len(code["cmd_data"])), *map(str, sizes)]
    assert lines[-1].split() == ["1", str(24 * 20 * 3), "10", str(sizes[0]), "7"]
    assert told["scratch_bytes"] == sizes[1]
    assert told["files"]["commands_0.bin"] == len(code["cmd_data"])
    assert told["cycles"] > 0
    page = (tmp_path / "out" / "README.md").read_text()
    assert "| 0 | ethos-u55-256.0 | ethos-u55-256 | tensor0:i8[1,24,20,3] |" in page
    assert "network.hetnn" not in told["files"]


def test_other_parts_run_in_hetnns_runtime(tmp_path: Path) -> None:
    """Reals become integers on the CPU, which the Ethos-U's step turns into sevens, and they become reals again."""
    text = """graph @g {stage = imported} (%x: f32[1,4,6,6]) -> (%y) {
      %q = quantize(%x) {to = i8, q_scale = [0.05], q_zero = 3} : i8{0.05:3}[1,4,6,6]
      %p = max_pool2d(%q) {kernel = [2,2], stride = [2,2], q_scale = [0.05], q_zero = 3} : i8{0.05:3}[1,4,3,3]
      %r = relu(%p) {q_scale = [0.05], q_zero = 3} : i8{0.05:3}[1,4,3,3]
      %y = dequantize(%r) : f32[1,4,3,3]
    }"""
    told, exe = exported(text, tmp_path)
    assert [step["device"] for step in told["steps"]] == ["cpu", "ethos-u55-256", "cpu"]
    flags = [*command("config", "--includes").split(), *command("config", "--libs").split()]
    sources = ["network.c", "hetnn_ethos.c", "hetnn_ethos_device.c", "data.S"]
    program = build(tmp_path, MIXED, sources, *flags)
    ran = subprocess.run([program, "network.hetnn"], cwd=tmp_path / "out", capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    *_, given, made = ran.stdout.splitlines()
    assert given == f"in {3} {3 + 36} {3 + 72} {3 + 108}"  # of the first pixel each channel
    channels = np.array(made.split(), np.float32).reshape(4, 9)
    assert np.allclose(channels, [[(7 - 3) * 0.05], [(17 - 3) * 0.05], [(7 - 3) * 0.05], [(7 - 3) * 0.05]])
    assert np.allclose(exe.run([np.zeros((1, 4, 6, 6), np.float32)])[0], 0)


def test_a_file_without_such_a_part_is_refused(tmp_path: Path) -> None:
    text = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\n %y = relu(%x) : f32[4]\n}"
    hetnn.compile(text, "cpu").save(tmp_path / "plain.hetnn")
    with pytest.raises(AssertionError, match="has no part for an Ethos-U"):
        command("export-device", str(tmp_path / "plain.hetnn"), str(tmp_path / "out"))
