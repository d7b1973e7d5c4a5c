"""ONNX models of every element type: inputs, outputs, initializers, casts and quantization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hetnn
from hetnn.importers.onnx.model import numbered
from importers.onnx_models import model_of

UNSIGNED = [("uint16", np.uint16), ("uint32", np.uint32), ("uint64", np.uint64)]
# Of 8 bits and fewer, and what a cast of NUMBERS to f32 and back must give.
STORED = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2,
    "uint2": ml_dtypes.uint2,
}


def one_node(op: str, dtypes: list[int], out: int, opset: int = 25, **attrs: Any) -> onnx.ModelProto:
    names = "abc"[: len(dtypes)]
    graph = helper.make_graph(
        [helper.make_node(op, list(names), ["y"], **attrs)],
        "g",
        [helper.make_tensor_value_info(name, dtype, [4]) for name, dtype in zip(names, dtypes, strict=True)],
        [helper.make_tensor_value_info("y", out, [4])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def test_an_older_package_lacks_the_newest_types() -> None:
    known = {name: number for name, number in TensorProto.DataType.items() if name not in ("INT2", "UINT2")}
    found = numbered(known)
    assert {*numbered(dict(TensorProto.DataType.items())).items()} - {*found.items()} == {
        (TensorProto.INT2, "i2"),
        (TensorProto.UINT2, "u2"),
    }


@pytest.mark.parametrize(("name", "dtype"), UNSIGNED)
def test_unsigned_integers_compute_as_such(name: str, dtype: type) -> None:
    most = np.iinfo(dtype).max
    a, b = np.array([most, 7, 2, most], dtype), np.array([1, 9, 2, most], dtype)
    wanted = {
        "Add": a + b,
        "Sub": a - b,
        "Mul": a * b,
        "Div": a // b,
        "Mod": a % b,
        "Max": np.maximum(a, b),
        "Min": np.minimum(a, b),
        "BitwiseXor": a ^ b,
    }
    number = getattr(TensorProto, name.upper())
    for op, result in wanted.items():
        y = hetnn.compile(one_node(op, [number, number], number))(a, b)
        assert y.dtype == dtype
        assert y.tolist() == result.tolist(), op
    less = hetnn.compile(one_node("Less", [number, number], TensorProto.BOOL))(a, b)
    assert less.tolist() == (a < b).tolist()


@pytest.mark.parametrize(("name", "dtype"), UNSIGNED)
def test_unsigned_integers_and_reals_become_one_another(name: str, dtype: type) -> None:
    number, most = getattr(TensorProto, name.upper()), int(np.iinfo(dtype).max)
    reals = np.array([0.0, 1.9, 255.5, float(most // 2 + 1)])
    narrow = hetnn.compile(one_node("Cast", [TensorProto.DOUBLE], number, to=number))(reals)
    assert narrow.tolist() == [0, 1, 255, most // 2 + 1]
    whole = np.array([0, 1, most // 2 + 1, most - most % 2048], dtype)
    wide = hetnn.compile(one_node("Cast", [number], TensorProto.DOUBLE, to=TensorProto.DOUBLE))(whole)
    assert wide.tolist() == [float(x) for x in whole]


def test_bf16_goes_in_and_out() -> None:
    model = model_of("agraph (bfloat16[4] x, bfloat16[4] y) => (bfloat16[4] z) { z = Add(x, y) }")
    x = np.array([1.5, -2, 3.25, 1e30], ml_dtypes.bfloat16)
    z = hetnn.compile(model)(x, x)
    assert z.dtype == ml_dtypes.bfloat16
    assert z.tolist() == [3.0, -4.0, 6.5, float(x[3] + x[3])]


@pytest.mark.parametrize("name", sorted(STORED))
def test_what_is_only_stored_is_read_and_written_by_casts(name: str) -> None:
    number, dtype = getattr(TensorProto, name.upper()), STORED[name]
    integer = name.startswith(("int", "uint"))
    x = np.array([0, 1, 2 if name == "uint2" else 1, 3 if name == "uint2" else -1], np.float32)
    x = x if integer else np.array([0, 0.75, -2.5, 1e9], np.float32)
    narrow = hetnn.compile(one_node("Cast", [TensorProto.FLOAT], number, to=number))(x)
    wanted = numpy_helper.to_array(_saturated(number, x))
    assert narrow.dtype == dtype
    assert narrow.tobytes() == wanted.tobytes()
    wide = hetnn.compile(one_node("Cast", [number], TensorProto.FLOAT, to=TensorProto.FLOAT))(narrow)
    assert wide.tolist() == wanted.astype(np.float32).tolist()


def _saturated(number: int, x: np.ndarray[Any, Any]) -> TensorProto:
    """By the standard's own helper, which saturates."""
    dtype = helper.tensor_dtype_to_np_dtype(number)
    if np.dtype(dtype).name.startswith("float"):
        return numpy_helper.from_array(numpy_helper.saturate_cast(x, dtype))
    return numpy_helper.from_array(x.astype(dtype))


def test_a_float_of_8_bits_overflows_to_infinity_where_it_must() -> None:
    number = TensorProto.FLOAT8E5M2
    x = np.array([1e9, -1e9, np.nan, 1], np.float32)
    y = hetnn.compile(one_node("Cast", [TensorProto.FLOAT], number, to=number, saturate=0))(x).astype(np.float32)
    assert y[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(y[2])
    assert y[3] == 1


@pytest.mark.parametrize(("name", "least", "most"), [("uint16", 0, 65535), ("int4", -8, 7), ("uint2", 0, 3)])
def test_quantization_to_every_width(name: str, least: int, most: int) -> None:
    number = getattr(TensorProto, name.upper())
    zero = helper.make_tensor("z", number, [], [1])
    model = one_node("QuantizeLinear", [TensorProto.FLOAT], number)
    model.graph.node[0].input.extend(["s", "z"])
    model.graph.initializer.extend([helper.make_tensor("s", TensorProto.FLOAT, [], [0.5]), zero])
    y = hetnn.compile(model)(np.array([-1e6, 0.3, 0.25, 1e6], np.float32))
    assert y.astype(np.int64).tolist() == [least, 2, 1, most]


def test_packed_weights_lie_in_files(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes([0x21, 0xF3]))  # 1, 2, 3, -1 in 4 bits each
    model = one_node("Cast", [TensorProto.INT4], TensorProto.FLOAT, to=TensorProto.FLOAT)
    weight = TensorProto(name="a", data_type=TensorProto.INT4, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("length", "2")):
        weight.external_data.add(key=key, value=value)
    model.graph.initializer.append(weight)
    onnx.save(model, tmp_path / "m.onnx")
    assert hetnn.compile(tmp_path / "m.onnx")().tolist() == [1, 2, 3, -1]


def test_nothing_is_computed_in_what_is_only_stored() -> None:
    model = one_node("Add", [TensorProto.INT4, TensorProto.INT4], TensorProto.INT4)
    with pytest.raises(hetnn.InvalidModel, match="nothing is computed in i4; got i4"):
        hetnn.compile(model)


def test_a_border_as_wide_as_an_input_says_of_what_is_only_stored() -> None:
    text = "agraph (int4[3] x, int64[2] pads, int4 v) => (y) { y = Pad (x, pads, v) }"
    x, v = np.array([1, -2, 3], ml_dtypes.int4), np.array(-5, ml_dtypes.int4)
    y = hetnn.compile(model_of(text, 21))(x, np.array([1, 2]), v)
    assert y.dtype == ml_dtypes.int4
    assert y.astype(int).tolist() == [-5, 1, -2, 3, -5, -5]


def test_no_numbers_are_made_in_what_is_only_stored() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"nothing is computed in i4; got i4\[3\]. Cast the result"):
        hetnn.compile("graph @g {stage = imported} () -> (%y) {\n  %y = arange() {end = 3, dtype = i4} : i4[3]\n}\n")
