"""What comes out is right or refused: arrays of any kind, arithmetic at the edges of types, options that do nothing."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

import hetnn
from functions import Function
from hetnn import _core
from hetnn.cli import main

RELU = "graph @g {stage = imported} (%a: f32[4]) -> (%y) {\n  %y = relu(%a) : f32[4]\n}\n"


@pytest.fixture(scope="module")
def relu() -> hetnn.Executable:
    return hetnn.compile(RELU)


def test_inputs_of_the_other_byte_order_are_swapped(relu: hetnn.Executable) -> None:
    x = np.array([-1, 0, 1, 2], dtype=">f4")
    np.testing.assert_array_equal(relu(x), [0, 0, 1, 2])


def test_outputs_of_the_other_byte_order_are_refused(relu: hetnn.Executable) -> None:
    with pytest.raises(hetnn.InvalidModel, match="array of >f4 has the other byte order"):
        relu.run([np.zeros(4, np.float32)], out=[np.zeros(4, ">f4")])


def test_npz_files_of_the_other_byte_order_are_read(tmp_path: Path) -> None:
    (tmp_path / "m.ir").write_text(RELU)
    np.savez(tmp_path / "x.npz", a=np.array([-1, 0, 1, 2], dtype=">f4"))
    status = main(
        ["run", str(tmp_path / "m.ir"), "--inputs", str(tmp_path / "x.npz"), "--outputs", f"{tmp_path}/y.npz"]
    )
    assert status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], [0, 0, 1, 2])


@pytest.mark.parametrize("place", ["input", "out"])
def test_masked_arrays_are_refused(relu: hetnn.Executable, place: str) -> None:
    plain, masked = np.ones(4, np.float32), np.ma.masked_array(np.ones(4, np.float32), [1, 0, 0, 0])
    with pytest.raises(hetnn.InvalidModel, match=r"is a masked array, whose mask would be lost.*filled"):
        relu.run([masked if place == "input" else plain], out=[masked] if place == "out" else None)


def run_eagerly_and_compiled(function: Callable[..., Tensor], x: Tensor, target: str = "cpu") -> tuple[Tensor, Tensor]:
    module = Function(function)
    return module(x), hetnn.compile(torch.export.export(module, (x,), strict=False), target)(x)


SIGNED_ZEROS: dict[str, Callable[[Tensor], Tensor]] = {
    "expm1": torch.expm1,
    "tanh": torch.tanh,
    "elu": nn.functional.elu,
    "selu": nn.functional.selu,
    "celu": nn.functional.celu,
    "gelu": nn.functional.gelu,
    "tanhshrink": nn.functional.tanhshrink,
    "sqrt by pow": lambda x: x**0.5,
    "rsqrt by pow": lambda x: x**-0.5,
}


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("name", SIGNED_ZEROS)
def test_zeros_have_the_sign_that_torch_gives_them(name: str, target: str) -> None:
    x = torch.tensor([0.0, -0.0] * 33)
    _, got = run_eagerly_and_compiled(SIGNED_ZEROS[name], x, target)
    # In f64, since torch's gelu in f32 loses the sign on processors without AVX-512 and keeps it on others.
    want = SIGNED_ZEROS[name](x.double())
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_roots_by_pow_of_infinities_are_those_of_torch(exponent: float, target: str) -> None:
    x = torch.tensor([-math.inf, math.inf, math.nan, -1.0, 4.0])
    want, got = run_eagerly_and_compiled(lambda x: x**exponent, x, target)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_a_threshold_keeps_nan(target: str) -> None:
    x = torch.tensor([math.nan, -1.0, 0.1, 0.5])
    want, got = run_eagerly_and_compiled(lambda x: nn.functional.threshold(x, 0.1, 20.0), x, target)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("number", [4, -1])
def test_one_hot_refuses_numbers_that_are_no_class(number: int, target: str) -> None:
    module = Function(lambda x: nn.functional.one_hot(x, 4))
    x = torch.tensor([[0, 3], [1, 2]])
    executable = hetnn.compile(torch.export.export(module, (x,), strict=False), target)
    assert executable(x).dtype == torch.int64
    np.testing.assert_array_equal(executable(x), module(x))
    with pytest.raises(hetnn.InvalidModel, match=rf"gather.*{number}"):
        executable(torch.tensor([[0, number], [1, 2]]))


def test_one_hot_of_onnx_leaves_rows_of_numbers_that_are_no_class_off() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 13]> agraph (int64[6] x) => (float[6,3] y) '
        "<int64 d = {3}, float[2] v = {5, 7}> { y = OneHot(x, d, v) }"
    )
    got = hetnn.compile(onnx.parser.parse_model(text))(np.array([0, 2, 3, -1, -3, -4]))
    want = np.full((6, 3), 5.0)
    want[[0, 4], 0] = want[[1, 3], 2] = 7
    np.testing.assert_array_equal(got, want)


BIG = 2**53 + 1
FLOATS = torch.tensor([-1.0, -200.0, 300.0, 3.7, 1000.0, -0.5])
HALF = torch.linspace(-3, 3, 61).half()
# What torch answers to the last bit (transcendental functions: to the last digits).
SAME: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "cos of int64": (torch.cos, (torch.arange(5),)),
    "sqrt of int32": (torch.sqrt, (torch.arange(5, dtype=torch.int32),)),
    "sigmoid of int64": (torch.sigmoid, (torch.arange(5),)),
    "exp of int16": (torch.exp, (torch.arange(5, dtype=torch.int16),)),
    "quotient of int64": (lambda x: x / 3, (torch.tensor([-7, BIG]),)),
    "sum above 2^53": (lambda x: x + 1, (torch.tensor([2**53, BIG]),)),
    "product above 2^53": (lambda x: x * 3 + BIG, (torch.tensor([2**53, BIG]),)),
    "reduction above 2^53": (lambda x: x.sum(0), (torch.tensor([BIG, 2**53]),)),
    "largest above 2^53": (lambda x: x.amax(0), (torch.tensor([BIG, 2**53]),)),
    "equality above 2^53": (torch.eq, (torch.tensor([BIG]), torch.tensor([2**53]))),
    "magnitude above 2^53": (torch.abs, (torch.tensor([-BIG, BIG]),)),
    "clamp with integer bounds": (lambda x: x.clamp(BIG, 2**60 + 1), (torch.tensor([0, BIG + 2, 2**61]),)),
    "clamp with a bound of odd digits": (lambda x: x.clamp(min=BIG), (torch.tensor([0, BIG - 1, BIG + 1]),)),
    "clamp of int32": (lambda x: x.clamp(1, 2), (torch.tensor([0, 1, 2, 3], dtype=torch.int32),)),
    "a number times f16": (lambda x: x * 1.1 + 0.1, (HALF,)),
    "a large number times f16": (lambda x: x * 70000.0, (HALF / 4,)),
    "f16 by a number": (lambda x: x / 3.3, (HALF,)),
    "a number less f16": (lambda x: 1.1 - x, (HALF,)),
    "f16 beside a number": (lambda x: x > 0.1, (torch.tensor([0.1, 0.0999, 0.2]).half(),)),
    "a number times bf16": (lambda x: (x.bfloat16() * 1.1).float(), (torch.linspace(-3, 3, 61),)),
    "f32 to u8": (lambda x: x.to(torch.uint8), (FLOATS,)),
    "f32 to i8": (lambda x: x.to(torch.int8), (FLOATS,)),
    "f32 to i16": (lambda x: x.to(torch.int16), (FLOATS * 1000,)),
    "f64 to u8": (lambda x: x.to(torch.uint8), (FLOATS.double(),)),
    "f16 to u8": (lambda x: x.to(torch.uint8), (FLOATS.half(),)),
    "many f32 to u8": (lambda x: x.to(torch.uint8), (torch.linspace(-400, 800, 333),)),
    "many f32 to i8": (lambda x: x.to(torch.int8), (torch.linspace(-400, 800, 333),)),
    "f32 to i32": (lambda x: x.to(torch.int32), (torch.tensor([3e9, -3e9, math.inf, -math.inf, math.nan]),)),
    "f32 to i64": (lambda x: x.to(torch.int64), (torch.tensor([3e19, -3e19, math.inf, -math.inf, math.nan]),)),
    "f32 to bool": (lambda x: x.to(torch.bool), (torch.tensor([0.0, -0.0, 1e-40, math.nan, 0.5]),)),
    "sign of NaN": (torch.sign, (torch.tensor([math.nan, -0.0, 2.0, -math.inf]),)),
    "u8 and a number beyond it": (lambda x: x + 1000, (torch.tensor([250, 0], dtype=torch.uint8),)),
    "u8 times a negative number": (lambda x: x * -1, (torch.tensor([250, 0], dtype=torch.uint8),)),
    "clamp with NaN": (lambda x: x.clamp(math.nan, 1), (FLOATS,)),
    "hypot of inf and NaN": (lambda x: torch.hypot(x, x * 0 + math.nan), (torch.tensor([math.inf, 1.0]),)),
    "least integer by -1": (lambda x: x // -1, (torch.tensor([-(2**63), 7]),)),
    "i64 to i32": (lambda x: x.to(torch.int32), (torch.tensor([BIG, -BIG]),)),
}


@pytest.mark.parametrize("name", SAME)
def test_the_answer_is_that_of_torch(name: str) -> None:
    function, inputs = SAME[name]
    module = Function(function)
    got = hetnn.compile(torch.export.export(module, inputs, strict=False))(*inputs)
    want = module(*inputs)
    assert got.dtype == want.dtype
    exact = name.split(" ")[0] not in ("cos", "sqrt", "sigmoid", "exp")
    torch.testing.assert_close(got, want, rtol=0 if exact else 1e-6, atol=0, equal_nan=True)


def test_alpha_of_f16_is_as_near_as_two_roundings() -> None:
    """torch's own vector loop and its rest round differently here."""
    module = Function(lambda x: torch.add(x, x, alpha=1.1))
    got = hetnn.compile(torch.export.export(module, (HALF,), strict=False))(HALF)
    torch.testing.assert_close(got, module(HALF), rtol=2**-9, atol=0)


@pytest.mark.parametrize("function", [hetnn.compile, hetnn.plan])
@pytest.mark.parametrize(
    ("model", "sizes", "message"),
    [
        (RELU, {"n": 4}, "shapes: the model has no symbol 'n'; all its sizes are fixed."),
        (RELU.replace("imported", "imported, symbols = [n: 1..8 = 4]").replace("[4]", "[n]"), {"m": 4, "n": 4}, "'m'"),
        (RELU.replace("imported", "imported, symbols = [n: 1..8 = 4]").replace("[4]", "[n]"), {"n": 9}, "[1, 8]"),
        (RELU.replace("imported", "imported, symbols = [n: 1..8 = 4]").replace("[4]", "[n]"), {"n": 2.5}, "2.5"),
    ],
    ids=["static", "unknown", "out of range", "no integer"],
)
def test_sizes_that_mean_nothing_are_refused(function: Any, model: str, sizes: Any, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=re.escape(message)):
        function(model, shapes=[sizes])


@pytest.mark.parametrize("threads", [-3, "2", 2.5, True, 5000])
def test_threads_that_are_no_number_are_refused(relu: hetnn.Executable, tmp_path: Path, threads: Any) -> None:
    relu.save(tmp_path / "m.hetnn")
    with pytest.raises(hetnn.InvalidModel, match=re.escape("threads must be an integer in [0, 4096]; found")):
        hetnn.load(tmp_path / "m.hetnn", threads=threads)
    with pytest.raises(hetnn.InvalidModel, match="threads must be an integer in"):
        hetnn.compile(RELU, threads=threads)


@pytest.mark.parametrize("seconds", [math.nan, -1.0])
def test_seconds_that_are_none_are_refused(seconds: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(hetnn.InvalidModel, match="seconds must be a number of at least 0"):
        _core.allocate([("a", 0, 1, 1)], 10, seconds, False)
    (tmp_path / "b.csv").write_text("id,lower,upper,size\na,0,1,1\n")
    assert main(["allocate", str(tmp_path / "b.csv"), "--capacity", "9", f"--seconds={seconds}"]) == 2
    assert "--seconds takes a number of at least 0" in capsys.readouterr().err
    (tmp_path / "m.ir").write_text(RELU)
    assert main(["bench", str(tmp_path / "m.ir"), f"--seconds={seconds}"]) == 2


def test_memory_below_nothing_is_refused(relu: hetnn.Executable) -> None:
    with pytest.raises(hetnn.InvalidModel, match="bytes must be at least 0; found -5"):
        relu.keep_at_most(-5)


def exported(function: Callable[..., Any], *inputs: Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(Function(function), inputs, strict=False)


SINGULAR = torch.tensor([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize(
    ("function", "broken", "message"),
    [
        (torch.linalg.inv, SINGULAR, r"lu '.*': matrix 0 is singular: pivot 2 of its factors is 0"),
        (torch.inverse, SINGULAR, "matrix 0 is singular"),
        (lambda x: torch.linalg.solve(x, x), SINGULAR, "matrix 0 is singular"),
        (torch.linalg.lu_factor, SINGULAR, "matrix 0 is singular"),
        (torch.linalg.inv, torch.stack([torch.eye(2), SINGULAR]), "matrix 1 is singular"),
        (torch.linalg.cholesky, -torch.eye(2), r"matrix 0 is not positive definite: its minor of order 1"),
    ],
    ids=["inv", "inverse", "solve", "lu_factor", "a batch", "cholesky"],
)
def test_matrices_that_torch_refuses_are_refused(function: Callable[..., Any], broken: Tensor, message: str) -> None:
    sound = torch.eye(2).expand(broken.shape) * 2
    exe = hetnn.compile(exported(function, sound))
    torch.testing.assert_close(exe(sound), function(sound), check_dtype=False)
    with pytest.raises(RuntimeError):
        function(broken)
    with pytest.raises(hetnn.InvalidModel, match=message):
        exe(broken)
    torch.testing.assert_close(exe(sound), function(sound), check_dtype=False)


def test_what_torch_leaves_unchecked_is_not_refused() -> None:
    exe = hetnn.compile(exported(lambda x: torch.linalg.inv_ex(x).info, SINGULAR))
    assert int(exe(SINGULAR)) == int(torch.linalg.inv_ex(SINGULAR).info) == 2


@pytest.mark.parametrize("function", [lambda x: x.median(0), lambda x: x.kthvalue(2, 0)], ids=["median", "kthvalue"])
def test_places_among_equal_integers_are_refused(function: Callable[..., Any]) -> None:
    x = torch.tensor([1, 1, 0, 1])
    with pytest.raises(hetnn.Unsupported, match="which of equal ones torch names follows no order"):
        hetnn.compile(exported(function, x))
    exe = hetnn.compile(exported(lambda x: function(x)[0], x))
    assert exe(x) == function(x)[0]


TINY = 1e-40  # below the least normal f32, 1.18e-38


@pytest.mark.parametrize("threads", [1, 2])
def test_denormals_count_as_zeros_unless_they_are_kept(threads: int) -> None:
    net = nn.Conv2d(3, 8, 3).eval()
    x = torch.full((1, 3, 32, 32), TINY)
    program = torch.export.export(nn.Sequential(net, nn.Sigmoid(), nn.Conv2d(8, 1, 1)).eval(), (x,), strict=False)
    scaled = torch.export.export(Function(lambda x: x * 0.5), (x,), strict=False)
    flushed, kept = (hetnn.compile(scaled, threads=threads, denormals=how) for how in ("flush", "keep"))
    assert not flushed(x).any()
    assert torch.equal(kept(x), x * 0.5)
    assert hetnn.compile(program, threads=threads)(x).isfinite().all()
    assert np.float32(TINY) * np.float32(1) > 0  # the caller's own arithmetic is as before
    image = pickle.loads(pickle.dumps(kept))
    assert torch.equal(image(x), x * 0.5)


@pytest.mark.parametrize("scale", [2.0**-140, 2.0**-149, 1e-42])
@pytest.mark.parametrize(("dtype", "least", "most"), [("i8", -128, 127), ("u8", 0, 255), ("i16", -(1 << 15), 32767)])
def test_integers_of_a_denormal_scale_stand_for_its_multiples(scale: float, dtype: str, least: int, most: int) -> None:
    """Where denormals count as zeros, 0 / scale would be NaN, and all else infinite."""
    type_ = f"{dtype}{{{scale!r}:3}}[5]"
    text = f"""graph @g {{stage = imported}} (%x: f32[5]) -> (%q, %y) {{
  %q = quantize(%x) {{to = {dtype}, q_scale = [{scale!r}], q_zero = 3}} : {type_}
  %y = dequantize(%q) : f32[5]
}}"""
    x = (np.array([0, 1, -2, 100, 1e9]) * np.float64(np.float32(scale))).astype(np.float32)
    q, y = hetnn.compile(text)(x)
    wanted = np.clip(np.array([0, 1, -2, 100, 1e9]) + 3, least, most)
    np.testing.assert_array_equal(q, wanted)
    np.testing.assert_array_equal(y, ((wanted - 3) * np.float64(np.float32(scale))).astype(np.float32))


def test_blocks_of_a_denormal_scale_stand_for_its_multiples() -> None:
    text = """graph @g {stage = imported} (%q: i4[1,4]) -> (%y) {
  %s = constant() {value = f32[1,2] {1, 1e-38}} : f32[1,2]
  %y = dequantize_blocks(%q, %s) {axis = 1, block = 2} : f32[1,4]
}"""
    q = np.array([[1, -8, 7, -8]], ml_dtypes.int4)
    y = hetnn.compile(text)(q)
    np.testing.assert_array_equal(y, q.astype(np.float32) * np.array([[1, 1, 1e-38, 1e-38]], np.float32))


def test_denormals_of_another_word_are_refused() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r'denormals must be one of flush, keep; found "zero"'):
        hetnn.compile(RELU, denormals="zero")


PLACES = torch.tensor([0, 3])
OF_FOUR: dict[str, tuple[Callable[..., Tensor], list[int]]] = {
    "embedding": (lambda x: torch.embedding(torch.arange(12.0).reshape(4, 3), x), [4, -1]),
    "index_select": (lambda x: torch.arange(4.0).index_select(0, x), [4]),
    "index": (lambda x: torch.arange(4.0)[x], [4, -5]),
    "index of two axes": (lambda x: torch.arange(20.0).reshape(5, 4)[x, x], [4, -5]),
    "gather": (lambda x: torch.gather(torch.arange(4.0), 0, x), [4, -1]),
    "scatter": (lambda x: torch.zeros(4).scatter(0, x, 1.0), [4, -1]),
    "scatter_add": (lambda x: torch.zeros(4).scatter_add(0, x, torch.ones(2)), [4, -1]),
    "index_add": (lambda x: torch.zeros(4).index_add(0, x, torch.ones(2)), [4, -1]),
    "index_copy": (lambda x: torch.zeros(4).index_copy(0, x, torch.ones(2)), [4, -1]),
    "index_put of two axes": (lambda x: torch.zeros(5, 4).index_put((x, x), torch.ones(2)), [4, -5]),
    "index_put": (lambda x: torch.zeros(4).index_put((x,), torch.ones(2)), [4, -5]),
}


@pytest.mark.parametrize("name", OF_FOUR)
def test_places_outside_are_refused_as_in_torch(name: str) -> None:
    function, outside = OF_FOUR[name]
    exe = hetnn.compile(exported(function, PLACES))
    torch.testing.assert_close(exe(PLACES), function(PLACES))
    for place in outside:
        broken = torch.tensor([0, place])
        with pytest.raises((IndexError, RuntimeError)):
            function(broken)
        with pytest.raises(hetnn.InvalidModel, match=f"index {place} is outside an axis of 4"):
            exe(broken)


def test_division_of_integers_by_zero_is_refused_as_in_torch() -> None:
    x, y = torch.tensor([7, -7]), torch.tensor([2, 0])
    for function in (lambda a, b: a // b, lambda a, b: a % b):
        exe = hetnn.compile(exported(function, x, x))
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            function(x, y)
        with pytest.raises(hetnn.InvalidModel, match=r"zero|0"):
            exe(x, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overlap": "no"}, "overlap must be True or False; found 'no'."),
        ({"overlap": None}, "overlap must be True or False; found None."),
        ({"session": 3}, "session must be what the executable's session() gave; got int."),
        ({"out": 3}, "the arrays of a run must be a list; got int. Write [x]."),
    ],
)
def test_options_of_a_run_that_make_no_sense_are_refused(
    relu: hetnn.Executable, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(hetnn.InvalidModel, match=re.escape(message)):
        relu.run([np.zeros(4, np.float32)], **options)


def test_a_deadline_is_a_number_of_seconds(relu: hetnn.Executable) -> None:
    inputs = [np.zeros(4, np.float32)]
    with pytest.raises(hetnn.InvalidModel, match="timeout_s must be a number of seconds; found nan"):
        relu.run_async(inputs, timeout_s=float("nan"))
    assert len(relu.run_async(inputs, timeout_s=1e300).result()) == 1
    with pytest.raises(hetnn.Unavailable, match="deadline passed"):
        relu.run_async(inputs, timeout_s=float("-inf")).result()
