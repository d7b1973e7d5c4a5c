"""ONNX sequences and optional values that go in and out of a model, and whose lengths are known when it runs."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import hetnn
from importers.onnx_models import f32, model_of

Array = np.ndarray[Any, Any]


def same(mine: Any, theirs: Any) -> None:
    if theirs is None:
        assert mine is None
    elif isinstance(theirs, (list, tuple)):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            same(a, b)
    else:
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def agrees(text: str, *inputs: Any) -> Any:
    model = model_of(text)
    exe = hetnn.compile(model)
    names = [value.name for value in model.graph.input]
    wanted = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    given = exe(*inputs)
    same(list(given) if len(wanted) > 1 else [given], wanted)
    return exe


def i64(value: Any) -> Array:
    return np.array(value, np.int64)


SEQUENCE = [f32(3), f32(2, 2), f32(), f32(0, 4), f32(5)]


@pytest.mark.parametrize("place", [0, 3, -1])
def test_insert_erase_and_length_at_places_that_are_inputs(place: int) -> None:
    text = """agraph (seq(float) s, float[2] x, int64 at) => (seq(float) y, seq(float) z, seq(float) w, int64 n) {
      y = SequenceInsert(s, x, at)
      z = SequenceErase(s, at)
      w = SequenceErase(y)
      n = SequenceLength(y)
    }"""
    agrees(text, SEQUENCE, f32(2), i64(place))


def test_one_executable_takes_every_length(tmp_path: Path) -> None:
    text = "agraph (seq(float) s, float[2] x) => (seq(float) y) { y = SequenceInsert(s, x) }"
    exe = agrees(text, SEQUENCE, f32(2))
    exe.save(tmp_path / "s.hetnn")
    x = f32(2)
    for run in (exe, hetnn.load(tmp_path / "s.hetnn"), pickle.loads(pickle.dumps(exe))):
        for given in ([], SEQUENCE, SEQUENCE[:2]):
            same(run(given, x), [*given, x])
            same(run(s=given, x=x), [*given, x])
    assert [str(port.dtype) for port in exe.inputs] == ["f32", "i64", "f32"]


def test_an_entry_has_the_shape_that_the_model_declares() -> None:
    text = """agraph (seq(float[a,2]) s, int64 at) => (float[b,2] y, float[b] z) {
      x = SequenceAt(s, at)
      y = Relu(x)
      axis = Constant<value_ints = [1]>()
      z = ReduceSum<keepdims = 0>(x, axis)
    }"""
    exe = agrees(text, [f32(3, 2), f32(1, 2)], i64(-1))
    with pytest.raises(hetnn.InvalidModel, match=r"the place in a sequence of 1 must be in \[-1,1\); got 1"):
        exe([f32(3, 2)], i64(1))
    with pytest.raises(hetnn.InvalidModel, match=r"the values give the shape \[3\]; the model declares \[\w+,2\]"):
        exe([f32(3)], i64(0))
    with pytest.raises(hetnn.Unsupported, match="a tensor of unknown rank out of a sequence"):
        hetnn.compile(model_of("agraph (seq(float[]) s, int64 k) => (float y) { x = SequenceAt(s, k)\ny = Relu(x) }"))


def test_entries_of_two_sequences_with_sizes_of_one_name_meet() -> None:
    text = """agraph (seq(float[n]) s, seq(float[n]) t) => (float[n] y) {
      k = Constant<value_int = 0>()
      a = SequenceAt(s, k)
      b = SequenceAt(t, k)
      y = Add(a, b)
    }"""
    exe = agrees(text, [f32(3)], [f32(3)])
    with pytest.raises(hetnn.InvalidModel, match=r"x must have the shape \[3\]; got f32\[4\]"):
        exe([f32(3)], [f32(4)])


def test_concat_of_any_number() -> None:
    text = """agraph (seq(float[a,3]) s) => (float[b,3] y, float[a,3,c] z) {
      y = ConcatFromSequence<axis = 0>(s)
      z = ConcatFromSequence<axis = -1, new_axis = 1>(s)
    }"""
    exe = agrees(text, [f32(2, 3), f32(2, 3), f32(2, 3)])
    with pytest.raises(
        hetnn.InvalidModel, match=r"tensors must be alike but along axis 2; got \[1,3,1\] and \[2,3,1\]"
    ):
        exe([f32(1, 3), f32(2, 3)])
    with pytest.raises(hetnn.InvalidModel, match="the sequence is empty"):
        exe([])


@pytest.mark.parametrize("split", [i64(2), i64([1, 4, 2])])
def test_splits_whose_parts_are_inputs(split: Array) -> None:
    shape = "k" if split.ndim else ""
    inputs = f"float[m,2] x, int64{f'[{shape}]' if shape else ''} parts"
    text = (
        f"agraph ({inputs}) => (seq(float[a,2]) y, int64 n) {{ y = SplitToSequence(x, parts)\nn = SequenceLength(y) }}"
    )
    exe = agrees(text, f32(7, 2), split)
    with pytest.raises(
        hetnn.InvalidModel, match=r"parts' sizes must add up to 7|size of a part must be positive; got 0"
    ):
        exe(f32(7, 2), split * 0)


def test_a_split_of_a_symbolic_axis_without_parts() -> None:
    agrees("agraph (float[2,m] x) => (seq(float[2]) y) { y = SplitToSequence<axis = 1, keepdims = 0>(x) }", f32(2, 3))


def test_splits_into_many_parts_are_made_when_they_run() -> None:
    agrees("agraph (float[9000] x) => (seq(float[k]) y) <int64 two = {2}> { y = SplitToSequence(x, two) }", f32(9000))
    agrees("agraph (float[5000,2] x) => (seq(float[2]) y) { y = SplitToSequence<keepdims = 0>(x) }", f32(5000, 2))
    vast = "agraph (float[3,1099511627776] x) => (seq(float) y) <int64 four = {4}> { y = SplitToSequence"
    for given in ("<axis = 1>(x, four) }", "<axis = 1>(x) }"):
        with contextlib.suppress(hetnn.Error):  # at once, whatever is said of its size
            hetnn.compile(model_of(vast + given))


LOOP = """agraph (int64 rounds, seq(float) s, float[4] x) => (seq(float) y, int64 n) {
  go = Constant<value = bool {1}>()
  y = Loop(rounds, go, s) <body = round (int64 i, bool c, seq(float) t) => (bool d, seq(float) u) {
    d = Identity(c)
    zero = Constant<value_ints = [0]>()
    end = Unsqueeze(i, zero)
    part = Slice(x, zero, end)
    u = SequenceInsert(t, part)
  }>
  n = SequenceLength(y)
}"""


def test_a_loop_that_carries_a_sequence() -> None:
    exe = agrees(LOOP, i64(3), SEQUENCE, f32(4))
    same(exe(i64(0), SEQUENCE, f32(4)), [SEQUENCE, i64(5)])


def test_a_loop_that_carries_a_tensor_that_grows_and_reads_a_size_of_the_graph() -> None:
    text = """agraph (int64 rounds, float[m] x) => (float[k] y) {
      go = Constant<value = bool {1}>()
      y = Loop(rounds, go, x) <body = round (int64 i, bool c, float[a] v) => (bool d, float[b] w) {
        d = Identity(c)
        shape = Shape(x)
        ones = ConstantOfShape<value = float[1] {2}>(shape)
        w = Concat<axis = 0>(v, ones)
      }>
    }"""
    exe = agrees(text, i64(3), f32(2))
    assert exe(i64(0), f32(5)).shape == (5,)


def test_a_map_over_sequences_and_a_tensor() -> None:
    text = """agraph (seq(float[n]) s, seq(float[n]) t, float[m] z) => (seq(float[n]) y, seq(float[m]) w) {
      y, w = SequenceMap(s, t, z) <body = each (float[n] a, float[n] b, float[m] c) => (float[n] d, float[m] e) {
        d = Add(a, b)
        e = Relu(c)
      }>
    }"""
    exe = hetnn.compile(model_of(text))
    one, two, z = [f32(3), f32(5)], [f32(3), f32(5)], f32(2)
    added, repeated = exe(one, two, z)
    same(added, [a + b for a, b in zip(one, two, strict=True)])
    same(repeated, [np.maximum(z, 0)] * 2)
    same(exe([], [], z), [[], []])


def test_a_condition_chooses_between_sequences_and_tensors_unlike_in_size() -> None:
    text = """agraph (bool c, float[3] x, float[2,2] z) => (seq(float) y, float[n,2] w) {
      y, w = If(c) <
        then_branch = t () => (seq(float) a, float[k,2] g) { a = SequenceConstruct(x, z)\n g = Identity(z) },
        else_branch = e () => (seq(float) b, float[l,2] h) { b = SequenceConstruct(z)\n h = Concat<axis = 0>(z, z) }>
    }"""
    exe = agrees(text, np.array(True), f32(3), f32(2, 2))
    x, z = f32(3), f32(2, 2)
    same(exe(np.array(False), x, z), [[z], np.concatenate([z, z])])


def test_optional_values_that_are_absent_or_given() -> None:
    text = """agraph (optional(float[n]) o, optional(seq(float)) s) => (bool a, bool b, float[m] y, seq(float) z) {
      a = OptionalHasElement(o)
      b = OptionalHasElement(s)
      y = If(a) <
        then_branch = t () => (float[k] g) { g = OptionalGetElement(o) },
        else_branch = e () => (float[1] h) { h = Constant<value_floats = [7.0]>() }>
      z = If(b) <
        then_branch = t () => (seq(float) i) { i = OptionalGetElement(s) },
        else_branch = e () => (seq(float) j) { j = SequenceEmpty() }>
    }"""
    exe = hetnn.compile(model_of(text))
    x = f32(3)
    same(exe(x, SEQUENCE), [np.array(True), np.array(True), x, SEQUENCE])
    same(exe(None, None), [np.array(False), np.array(False), np.array([7], np.float32), []])
    same(exe(None, []), [np.array(False), np.array(True), np.array([7], np.float32), []])


def test_an_output_that_may_be_absent_is_none() -> None:
    text = """agraph (bool c, float[3] x) => (optional(seq(float)) y) {
      y = If(c) <
        then_branch = t () => (optional(seq(float)) a) { s = SequenceConstruct(x)\n a = Optional(s) },
        else_branch = e () => (optional(seq(float)) b) { b = Optional<type = seq(float)>() }>
    }"""
    exe = hetnn.compile(model_of(text))
    x = f32(3)
    same(exe(np.array(True), x), [x])
    assert exe(np.array(False), x) is None


def test_inputs_that_are_no_sequences_are_named() -> None:
    exe = hetnn.compile(model_of("agraph (seq(float) s) => (int64 n) { n = SequenceLength(s) }"))
    with pytest.raises(hetnn.InvalidModel, match="input 's' must be a list of arrays; got ndarray"):
        exe(f32(3))
    with pytest.raises(hetnn.InvalidModel, match=r"input 's\[1\]' must be float32 of at most 8 axes; got float64 of 1"):
        exe([f32(3), np.zeros(2)])
    exe = hetnn.compile(model_of("agraph (seq(float) s) => (seq(float) y) { y = SequenceErase(s) }"))
    with pytest.raises(hetnn.InvalidModel, match=r"row 0 of the sequence's shapes must be a rank of at most 8"):
        exe.run([f32(3), i64([[1, 4, 0, 0, 0, 0, 0, 0, 0]])])


APPENDED = {
    "in each round": "grown = SequenceInsert(before, r)",
    "in some": "keep = ReduceMax<keepdims = 0>(r) flag = Greater(keep, zero) grown = If(flag) "
    "<then_branch = more () => (seq(float) t) {{ t = SequenceInsert(before, r) }}, "
    "else_branch = same () => (seq(float) e) {{ e = Identity(before) }}>",
}


@pytest.mark.parametrize("how", APPENDED)
def test_a_list_that_a_loop_begins_without_any_tensor(how: str) -> None:
    """What is put there says the rank, which no shape declares."""
    text = f"""
    agraph (float[n,3] x) => (float y, int64 c) <float zero = {{0}}, bool on = {{1}}> {{
      all = Shape <end = 1> (x) trips = Squeeze (all)
      none = SequenceEmpty ()
      list = Loop (trips, on, none) <body = round (int64 i, bool g, seq(float) before) => (bool go, seq(float) grown) {{
        r = Gather (x, i)
        {APPENDED[how].replace("{{", "{").replace("}}", "}")}
        go = Identity (g)
      }}>
      y = ConcatFromSequence <axis = 0, new_axis = 1> (list)
      c = SequenceLength (list)
    }}"""
    exe = hetnn.compile(model_of(text))
    x = np.array([[1, 2, 3], [-1, -2, -3], [4, 0, 0], [-5, -5, 6]], np.float32)
    for rows in (x, x[:1], x[2:]):
        kept = rows if how == "in each round" else rows[rows.max(1) > 0]
        y, count = exe(rows)
        np.testing.assert_array_equal(y, kept)
        assert count == len(kept)
