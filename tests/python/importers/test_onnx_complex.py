"""ONNX tensors of complex numbers: in, out, moved and carried; saved, refused where no operator is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hetnn
from importers.onnx_models import model_of, same_as_reference

Array = np.ndarray[Any, Any]
TYPES = {"complex64": np.complex64, "complex128": np.complex128}


def numbers(kind: str, *shape: int) -> Array:
    rng = np.random.default_rng(5)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(TYPES[kind])


MOVED = {
    "identity": "y = Identity(x)",
    "reshape": "s = Constant<value_ints = [3, 8]>() y = Reshape(x, s)",
    "transpose": "y = Transpose<perm = [1, 0]>(x)",
    "concat": "y = Concat<axis = 0>(x, x, x)",
    "slice": "a = Constant<value_ints = [1]>() b = Constant<value_ints = [9]>() y = Slice(x, a, b)",
    "gather": "i = Constant<value_ints = [3, 0, -1]>() y = Gather<axis = 0>(x, i)",
    "expand": "s = Constant<value_ints = [2, 4, 6]>() y = Expand(x, s)",
    "tile": "s = Constant<value_ints = [2, 1]>() y = Tile(x, s)",
    "where": "t = Transpose<perm = [1, 0]>(x) u = Transpose<perm = [1, 0]>(t) c = Constant<value_ints = [1]>() "
    "d = Cast<to = 9>(c) y = Where(d, x, u)",
    "pad": "p = Constant<value_ints = [0, 1, 2, 0]>() y = Pad(x, p)",
    "trilu": "y = Trilu(x)",
    "scatter": "i = Constant<value_ints = [1]>() j = Constant<value_ints = [0, 1]>() k = Reshape(i, j) "
    "u = Gather<axis = 0>(x, i) y = ScatterND(x, k, u)",
    "sequence": "q = SequenceConstruct(x, x) y = ConcatFromSequence<axis = 1>(q)",
    "unsqueezed": "a = Constant<value_ints = [0]>() z = Unsqueeze(x, a) y = Squeeze(z, a)",
}


def typed(kind: str, body: str, inputs: str = "", outputs: str = "") -> onnx.ModelProto:
    return model_of(f"agraph ({kind}[n, 6] x{inputs}) => ({outputs or f'{kind} y'}) {{ {body} }}", opset=21)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", MOVED)
def test_operators_move_complex_numbers(name: str, kind: str, tmp_path: Path) -> None:
    model = typed(kind, MOVED[name])
    exe = hetnn.compile(model)
    exe.save(tmp_path / "c.hetnn")
    for run in (exe, hetnn.load(tmp_path / "c.hetnn")):
        same_as_reference(run, model, numbers(kind, 4, 6))
    assert [(port.name, port.dtype) for port in exe.inputs] == [
        (f"x.{part}", "f32" if kind == "complex64" else "f64") for part in ("real", "imag")
    ]


def test_their_sizes_are_known() -> None:
    exe = hetnn.compile(typed("complex64", "y = Shape(x) z = Size(x)", outputs="int64[2] y, int64 z"))
    shape, size = exe(numbers("complex64", 5, 6))
    assert (shape.tolist(), size.item()) == ([5, 6], 30)


def test_constants_lie_in_initializers_files_and_nodes(tmp_path: Path) -> None:
    x, w = numbers("complex128", 2, 6), numbers("complex128", 6)
    model = typed("complex128", "v = Gather<axis = 0>(w, i) y = Concat<axis = 0>(x, v)", ", int64[m, 6] i")
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    places = np.array([[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]])
    exe = hetnn.compile(model)
    path = tmp_path / "m.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    for run in (exe, hetnn.compile(path)):
        np.testing.assert_array_equal(run(x, places), np.concatenate([x, w[places]]))


def test_branches_and_loops_carry_them() -> None:
    body = """
      y = If(c) <then_branch = g () => (complex64[n, 6] a) { a = Identity(x) },
                 else_branch = h () => (complex64[n, 6] b) { r = Constant<value_ints = [1, 0]>()
                                                             b = Reshape(x, s) }>
    """
    model = typed("complex64", f"s = Shape(x) {body}", ", bool c")
    exe, x = hetnn.compile(model), numbers("complex64", 3, 6)
    for c in (True, False):
        np.testing.assert_array_equal(exe(x, np.array(c)), x)
    turned = typed(
        "complex64",
        """y = Loop(n, , x) <body = g (int64 i, bool c, complex64[k, 6] a) => (bool d, complex64[k, 6] b) {
             d = Identity(c) e = Constant<value_ints = [1]>() f = Constant<value_ints = [0]>()
             t = Constant<value_ints = [100]>() u = Slice(a, e, t, f) v = Slice(a, f, e, f)
             b = Concat<axis = 0>(u, v) }>""",
        ", int64 n",
    )
    run = hetnn.compile(turned)
    for rounds in (0, 1, 5):
        np.testing.assert_array_equal(run(x, np.array(rounds)), np.roll(x, -rounds, axis=0))


def test_what_the_standard_does_not_compute_is_refused() -> None:
    for body, why in (("z = Add(x, x) y = Abs(z)", "Add: Add of complex numbers"), ("y = NonZero(x)", "NonZero")):
        with pytest.raises((hetnn.Unsupported, hetnn.InvalidModel), match=why):
            hetnn.compile(typed("complex64", body))
    with pytest.raises(hetnn.InvalidModel, match="complex"):
        hetnn.compile(typed("complex64", "y = Concat<axis = 0>(x, w)", ", float[m, 6] w"))
    exe = hetnn.compile(typed("complex64", "y = Identity(x)"))
    with pytest.raises(hetnn.InvalidModel, match="input 'x' must be complex; got float32"):
        exe(np.zeros((2, 6), np.float32))
