"""Long chains of sizes, nodes that hand a value on, and loops that somebody stops."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
from onnx import parser

import hetnn


def test_sizes_behind_a_thousand_nodes_are_read() -> None:
    steps = " ".join(f"s{k + 1} = Add (s{k}, one)" for k in range(2000))
    model = parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 20]>
        agraph (float[n] x) => (float[?] y) <int64[1] one = {{1}}, int64[1] all = {{-2000}}> {{
          s0 = Shape (x) {steps} size = Add (s2000, all) y = Reshape (x, size)
        }}"""
    )
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(hetnn.compile(model)(x), x)


def test_a_node_that_hands_sizes_on_is_no_circle() -> None:
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 20]>
        agraph (float[6] x, int64[2] wanted) => (float[?,?] y)
          <int64[1] first = {-7}, int64[1] last = {5}, int64[1] zero = {0}, int64[1] one = {1}> {
          whole = Slice (wanted, first, last) again = Slice (whole, zero, last) y = Reshape (x, again)
        }"""
    )
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(hetnn.compile(model)(x, np.array([2, 3])), x.reshape(2, 3))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_loop_stops_when_asked(target: str) -> None:
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 20]>
        agraph (int64 n, bool c, float[4] x) => (float[4] y) {
          y = Loop (n, c, x) <body = b (int64 i, bool g, float[4] s) => (bool h, float[4] t) {
            h = Identity (g) u = Sin (s) t = Add (u, s) }>
        }"""
    )
    exe = hetnn.compile(model, target)
    inputs = [np.array(1 << 40), np.array(True), np.ones(4, np.float32)]
    began = time.perf_counter()
    with pytest.raises(hetnn.Unavailable, match="deadline"):
        exe.run_async(inputs, timeout_s=0.1).result()
    run = exe.run_async(inputs)
    time.sleep(0.1)
    run.cancel()
    with pytest.raises(CancelledError):
        run.result()
    assert time.perf_counter() - began < 3
