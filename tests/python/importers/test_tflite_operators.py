"""Every operator of TFLite in f32, beside LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn.importers.tflite.rules import TFLITE
from importers.tflite_files import Array, Told, constant, one, random_inputs, reference

RNG = np.random.default_rng(7)
# Of which the reference leaves out a channel that TensorFlow and the fast kernel have.
FAST = {"LOCAL_RESPONSE_NORMALIZATION"}
# By the largest value: sums are in another order.
NEAR = 1e-5


def told(*shape: int, dtype: str = "f32") -> Told:
    return Told(shape, dtype)


def weights(*shape: int) -> Told:
    return constant(RNG.standard_normal(shape).astype(np.float32))


def integers(*values: Any) -> Told:
    return constant(np.array(values, np.int32))


def options(table: str, **fields: Any) -> dict[str, Any]:
    return {"": f"{table}Options", **fields}


def check(
    name: str,
    operands: Sequence[Told | None],
    how: Mapping[str, Any] | None = None,
    results: Sequence[Told] = (Told([1]),),
    of: Callable[[Array], Array] = lambda x: x,
) -> None:
    """An operator gives what LiteRT gives; `of` makes inputs that it takes from random ones."""
    data = one(name, operands, results, how)
    inputs = [of(x).astype(x.dtype) for x in random_inputs(data)]
    (wanted,) = reference(data, [inputs], fast=name in FAST)
    found = hetnn.compile(data)(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    for mine, theirs in zip(found, wanted, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(mine, theirs, rtol=NEAR, atol=NEAR * max(np.abs(theirs).max(initial=0), 1e-6))
        else:
            np.testing.assert_array_equal(mine, theirs)


Row = tuple[str, list[Any], dict[str, Any]]
IMAGE = (1, 7, 9, 4)


def window(table: str, same: bool, stride: int, dilation: int = 1, act: int = 0, **more: Any) -> dict[str, Any]:
    factors = {} if dilation == 1 else {"DilationHFactor": dilation, "DilationWFactor": dilation}
    told = {"Padding": int(not same), "StrideH": stride, "StrideW": stride, "FusedActivationFunction": act}
    return options(table, **told, **factors, **more)


CONVOLUTIONS: list[Row] = [
    *(
        ("CONV_2D", [told(*IMAGE), weights(6, 3, 3, 4), weights(6)], window("Conv2D", same, stride, dilation, act))
        for same, stride, dilation, act in [
            (True, 1, 1, 0),
            (True, 2, 1, 1),
            (False, 2, 1, 2),
            (True, 1, 2, 3),
            (False, 1, 2, 0),
        ]
    ),
    ("CONV_2D", [told(2, 5, 5, 6), weights(4, 1, 2, 3), weights(4)], window("Conv2D", True, 1)),
    ("CONV_2D", [told(*IMAGE), told(6, 3, 3, 4), told(6)], window("Conv2D", True, 1)),
    *(
        (
            "DEPTHWISE_CONV_2D",
            [told(*IMAGE), weights(1, 3, 3, 4 * many), weights(4 * many)],
            window("DepthwiseConv2D", same, stride, dilation, act, DepthMultiplier=many),
        )
        for same, stride, dilation, act, many in [(True, 1, 1, 3, 1), (True, 2, 1, 0, 2), (False, 1, 2, 1, 1)]
    ),
    *(
        (
            "TRANSPOSE_CONV",
            [integers(1, *goal, 3), weights(3, 3, 3, 4), told(1, 4, 5, 4), *more],
            window("TransposeConv", same, 2, act=act),
        )
        for same, goal, more, act in [
            (True, (8, 10), [], 0),
            (True, (7, 9), [weights(3)], 0),
            (False, (9, 11), [weights(3)], 1),
            (False, (10, 12), [], 0),
        ]
    ),
    (
        "CONV_3D",
        [told(1, 4, 5, 6, 3), weights(2, 3, 2, 3, 5), weights(5)],
        options(
            "Conv3D",
            Padding=0,
            StrideD=1,
            StrideH=2,
            StrideW=1,
            DilationDFactor=1,
            DilationHFactor=1,
            DilationWFactor=1,
        ),
    ),
]
POOLS: list[Row] = [
    (
        name,
        [told(*IMAGE)],
        options(
            "Pool2D",
            Padding=int(not same),
            StrideH=2,
            StrideW=stride,
            FilterHeight=3,
            FilterWidth=2,
            FusedActivationFunction=act,
        ),
    )
    for name in ("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D")
    for same, stride, act in [(True, 1, 0), (True, 2, 1), (False, 2, 0)]
]
UNARY: list[Row] = [
    (name, [told(2, 3, 4, 5)], {})
    for name in [
        "ABS",
        "CEIL",
        "COS",
        "EXP",
        "FLOOR",
        "HARD_SWISH",
        "LOGISTIC",
        "NEG",
        "RELU",
        "RELU6",
        "RELU_N1_TO_1",
        "RELU_0_TO_1",
        "ROUND",
        "SIGN",
        "SIN",
        "SQUARE",
        "TANH",
        "ELU",
        "ZEROS_LIKE",
    ]
] + [
    ("GELU", [told(3, 4)], options("Gelu", Approximate=False)),
    ("GELU", [told(3, 4)], options("Gelu", Approximate=True)),
    ("LEAKY_RELU", [told(3, 4)], options("LeakyRelu", Alpha=0.2)),
    ("PRELU", [told(1, 3, 4, 5), weights(5)], {}),
    ("PRELU", [told(1, 3, 4, 5), weights(1, 1, 5)], {}),
    ("PRELU", [told(1, 3, 4, 5), weights(3, 4, 5)], {}),
    ("PRELU", [told(6, 5), weights(5)], {}),
    ("LOGICAL_NOT", [told(3, 4, dtype="bool")], {}),
]
BINARY: list[Row] = [
    *(
        (name, [told(2, 3, 4, 5), other], options(table, FusedActivationFunction=act))
        for name, table in (("ADD", "Add"), ("SUB", "Sub"), ("MUL", "Mul"), ("DIV", "Div"))
        for other, act in [
            (told(2, 3, 4, 5), 0),
            (weights(5), 1),
            (weights(4, 1), 3),
            (told(2, 1, 1, 5), 2),
            (constant(np.float32(1.5)), 0),
        ]
    ),
    *(
        (name, [told(3, 4), told(4)], {})
        for name in [
            "MAXIMUM",
            "MINIMUM",
            "SQUARED_DIFFERENCE",
            "EQUAL",
            "NOT_EQUAL",
            "LESS",
            "LESS_EQUAL",
            "GREATER",
            "GREATER_EQUAL",
            "FLOOR_DIV",
            "FLOOR_MOD",
        ]
    ),
    *((name, [told(3, 4, dtype="bool"), told(4, dtype="bool")], {}) for name in ("LOGICAL_AND", "LOGICAL_OR")),
    ("ATAN2", [told(3, 4), told(3, 4)], {}),
    ("ADD_N", [told(3, 4), told(3, 4), weights(3, 4)], {}),
    ("SELECT_V2", [told(3, 1, dtype="bool"), told(3, 4), told(4)], {}),
    ("SELECT", [told(3, dtype="bool"), told(3, 4), told(3, 4)], {}),
    ("SELECT", [told(3, 4, dtype="bool"), told(3, 4), told(3, 4)], {}),
]
PRODUCTS: list[Row] = [
    ("FULLY_CONNECTED", [told(3, 4), weights(5, 4), weights(5)], options("FullyConnected", FusedActivationFunction=1)),
    ("FULLY_CONNECTED", [told(1, 2, 2, 4), weights(5, 4), None], options("FullyConnected")),
    ("FULLY_CONNECTED", [told(2, 3, 4), weights(5, 4), weights(5)], options("FullyConnected", KeepNumDims=True)),
    ("FULLY_CONNECTED", [told(3, 4), told(5, 4), None], options("FullyConnected")),
    *(
        (
            "BATCH_MATMUL",
            [told(2, 4, 3) if x else told(2, 3, 4), told(5, 4) if y else told(4, 5)],
            options("BatchMatMul", AdjX=x, AdjY=y),
        )
        for x in (False, True)
        for y in (False, True)
    ),
    ("EMBEDDING_LOOKUP", [integers(2, 0, 1, 2), weights(3, 4)], {}),
]
REDUCTIONS: list[Row] = [
    *(
        (name, [told(2, 3, 4, 5), integers(*axes)], options("Reducer", KeepDims=keep))
        for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
        for axes, keep in [((1, 2), False), ((1, 2), True), ((-1,), False), ((0, 3), False)]
    ),
    *((name, [told(3, 4, dtype="bool"), integers(1)], options("Reducer")) for name in ("REDUCE_ANY", "REDUCE_ALL")),
    ("SOFTMAX", [told(3, 4)], options("Softmax", Beta=1.0)),
    ("SOFTMAX", [told(2, 3, 4)], options("Softmax", Beta=0.5)),
    ("LOG_SOFTMAX", [told(3, 4)], {}),
    ("L2_NORMALIZATION", [told(2, 3, 4, 5)], options("L2Norm")),
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        [told(1, 3, 4, 6)],
        options("LocalResponseNormalization", Radius=2, Bias=1.0, Alpha=0.3, Beta=0.75),
    ),
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        [told(1, 3, 4, 6)],
        options("LocalResponseNormalization", Radius=9, Bias=1.0, Alpha=0.3, Beta=0.5),
    ),
    *(
        ("CUMSUM", [told(3, 4), integers(1)], options("Cumsum", Exclusive=a, Reverse=b))
        for a in (False, True)
        for b in (False, True)
    ),
]
MOVEMENTS: list[Row] = [
    ("CONCATENATION", [told(1, 3, 2, 4), told(1, 3, 2, 5)], options("Concatenation", Axis=-1)),
    ("CONCATENATION", [told(3, 4), told(2, 4)], options("Concatenation", Axis=0)),
    ("PACK", [told(3, 4), told(3, 4)], options("Pack", Axis=1, ValuesCount=2)),
    ("RESHAPE", [told(3, 4), integers(2, -1)], {}),
    ("RESHAPE", [told(3, 4)], options("Reshape", NewShape=[2, 6])),
    ("SQUEEZE", [told(1, 3, 1, 4)], options("Squeeze", SqueezeDims=[-2])),
    ("SQUEEZE", [told(1, 3, 1, 4)], options("Squeeze")),
    ("EXPAND_DIMS", [told(3, 4), integers(-1)], {}),
    ("TRANSPOSE", [told(2, 3, 4, 5), integers(3, 1, 0, 2)], {}),
    ("SLICE", [told(3, 4, 5), integers(1, 0, 2), integers(2, -1, 3)], {}),
    *(
        (
            "STRIDED_SLICE",
            [told(4, 5, 6), integers(*begin), integers(*end), integers(*step)],
            options("StridedSlice", **masks),
        )
        for begin, end, step, masks in [
            ((1, 0, 2), (3, 5, 6), (1, 2, 3), {}),
            ((3, -1, 0), (0, 0, 6), (-1, -2, 1), {}),
            ((1, 2, 1), (2, 3, 5), (1, 1, 2), {"ShrinkAxisMask": 3}),
            ((0, 0, 1), (0, 0, 3), (1, 1, 1), {"EllipsisMask": 1, "NewAxisMask": 2}),
            ((1, 1, 1), (2, 2, 2), (1, 1, 1), {"BeginMask": 1, "EndMask": 2}),
            ((-2,), (0,), (1,), {"ShrinkAxisMask": 1}),
        ]
    ),
    ("PAD", [told(1, 3, 4, 2), integers([0, 0], [1, 2], [0, 3], [0, 0])], {}),
    ("PADV2", [told(3, 4), integers([1, 0], [2, 1]), constant(np.float32(-1.5))], {}),
    ("MIRROR_PAD", [told(3, 4), integers([1, 2], [2, 1])], options("MirrorPad", Mode=0)),
    ("MIRROR_PAD", [told(3, 4), integers([1, 3], [2, 0])], options("MirrorPad", Mode=1)),
    ("TILE", [told(2, 3), integers(2, 3)], {}),
    ("BROADCAST_TO", [told(3, 1), integers(2, 3, 4)], {}),
    ("GATHER", [told(3, 4, 5), integers([2, 0], [1, 1])], options("Gather", Axis=1)),
    ("GATHER", [told(2, 3, 4, 5), integers([2, 0, 1], [1, 1, 3])], options("Gather", Axis=2, BatchDims=1)),
    ("GATHER_ND", [told(3, 4, 5), integers([[2, 0], [1, 1]], [[0, 3], [2, 2]])], {}),
    ("SCATTER_ND", [integers([1], [3], [1]), told(3, 4), integers(5, 4)], {}),
    ("REVERSE_V2", [told(3, 4, 5), integers(1)], {}),
    ("SPACE_TO_DEPTH", [told(2, 4, 6, 3)], options("SpaceToDepth", BlockSize=2)),
    ("DEPTH_TO_SPACE", [told(2, 2, 3, 12)], options("DepthToSpace", BlockSize=2)),
    ("SPACE_TO_BATCH_ND", [told(1, 4, 5, 3), integers(2, 3), integers([1, 1], [0, 1])], {}),
    ("BATCH_TO_SPACE_ND", [told(6, 2, 3, 3), integers(2, 3), integers([1, 0], [0, 2])], {}),
    ("FILL", [integers(2, 3), told()], {}),
]
RESIZES: list[Row] = [
    (name, [told(2, 5, 4, 3), integers(*goal)], options(table, AlignCorners=corners, HalfPixelCenters=centred))
    for name, table in (("RESIZE_BILINEAR", "ResizeBilinear"), ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor"))
    for goal in ((10, 8), (7, 9), (3, 2), (1, 8))
    for corners, centred in ((False, False), (True, False), (False, True))
]
ROWS = [*CONVOLUTIONS, *POOLS, *UNARY, *BINARY, *PRODUCTS, *REDUCTIONS, *MOVEMENTS, *RESIZES]
TRUTHS = [
    "LOGICAL_NOT",
    "LOGICAL_AND",
    "LOGICAL_OR",
    "EQUAL",
    "NOT_EQUAL",
    "LESS",
    "LESS_EQUAL",
    "GREATER",
    "GREATER_EQUAL",
    "REDUCE_ANY",
    "REDUCE_ALL",
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_an_operator_gives_what_litert_gives(row: Row) -> None:
    name, operands, how = row
    shape = [2, 4, 3] if name == "SLICE" else [1]  # which LiteRT compares
    check(name, operands, how, [Told(shape, "bool" if name in TRUTHS else "f32")])


@pytest.mark.parametrize(
    "name",
    [
        "LOG",
        "SQRT",
        "RSQRT",
    ],
)
def test_functions_of_what_is_greater_than_0(name: str) -> None:
    check(name, [told(3, 4)], of=lambda x: np.abs(x) + 0.1)


def test_powers() -> None:
    check("POW", [told(3, 4), told(4)], of=lambda x: np.abs(x) + 0.1)


@pytest.mark.parametrize(
    ("name", "operands", "how", "count"),
    [
        ("SPLIT", [integers(-1), told(2, 3, 4)], options("Split", NumSplits=2), 2),
        ("SPLIT_V", [told(2, 3, 5), integers(1, -1, 2), constant(np.int32(2))], options("SplitV", NumSplits=3), 3),
        ("UNPACK", [told(3, 2, 4)], options("Unpack", Num=2, Axis=1), 2),
    ],
)
def test_operators_of_several_results(name: str, operands: list[Told], how: dict[str, Any], count: int) -> None:
    check(name, operands, how, [Told([1])] * count)


@pytest.mark.parametrize(
    ("name", "operands", "how", "dtypes"),
    [
        ("ARG_MAX", [told(3, 4), constant(np.int32(1))], options("ArgMax", OutputType=2), ["i32"]),
        ("ARG_MIN", [told(3, 4), constant(np.int32(-2))], options("ArgMin", OutputType=4), ["i64"]),
        ("TOPK_V2", [told(3, 8), constant(np.int32(3))], {}, ["f32", "i32"]),
        ("SHAPE", [told(3, 8)], options("Shape", OutType=2), ["i32"]),
        ("RANK", [told(3, 8)], {}, ["i32"]),
        ("CAST", [told(3, 8)], options("Cast", InDataType=0, OutDataType=2), ["i32"]),
        ("CAST", [told(3, 8, dtype="i32")], options("Cast", InDataType=2, OutDataType=0), ["f32"]),
        ("CAST", [told(3, 8, dtype="bool")], options("Cast", InDataType=6, OutDataType=0), ["f32"]),
        ("ADD", [told(3, 8, dtype="i32"), told(8, dtype="i32")], options("Add"), ["i32"]),
        ("SUB", [told(3, 8, dtype="i64"), told(8, dtype="i64")], options("Sub"), ["i64"]),
        ("MUL", [told(3, 8, dtype="i32"), told(8, dtype="i32")], options("Mul"), ["i32"]),
        ("MAXIMUM", [told(3, 8, dtype="i32"), told(8, dtype="i32")], {}, ["i32"]),
        ("SUM", [told(3, 8, dtype="i32"), integers(1)], options("Reducer"), ["i32"]),
        (
            "ONE_HOT",
            [integers(0, 2, 5, -1), constant(np.int32(4)), constant(np.float32(2)), told()],
            options("OneHot", Axis=-1),
            ["f32"],
        ),
        ("WHERE", [told(3, 4, dtype="bool")], {}, ["i64"]),
        ("WHERE", [told(12)], {}, ["i64"]),
        (
            "REVERSE_SEQUENCE",
            [told(3, 5, 2), integers(2, 5, 0)],
            options("ReverseSequence", SeqDim=1, BatchDim=0),
            ["f32"],
        ),
        ("DYNAMIC_UPDATE_SLICE", [told(4, 5), told(2, 3), integers(1, 9)], {}, ["f32"]),
        ("BROADCAST_ARGS", [integers(3, 1), integers(2, 1, 4)], {}, ["i32"]),
        ("MATRIX_DIAG", [told(2, 3)], {}, ["f32"]),
        ("BUCKETIZE", [told(30)], options("Bucketize", Boundaries=[-1.0, 0.0, 0.5]), ["i32"]),
        ("BITWISE_XOR", [told(3, 8, dtype="i32"), told(8, dtype="i32")], {}, ["i32"]),
        ("RIGHT_SHIFT", [told(8, dtype="i32"), integers(0, 1, 2, 3, 4, 9, 31, 30)], {}, ["i32"]),
        ("BITCAST", [told(3, 8)], {}, ["i32"]),
        ("DEQUANTIZE", [told(3, 8, dtype="f16")], {}, ["f32"]),
        ("FAKE_QUANT", [told(3, 8)], options("FakeQuant", Min=-0.7, Max=1.3, NumBits=8), ["f32"]),
        ("RANGE", [constant(np.int32(2)), constant(np.int32(11)), constant(np.int32(3))], {}, ["i32"]),
        ("RANGE", [constant(np.float32(5)), constant(np.float32(1)), constant(np.float32(-0.75))], {}, ["f32"]),
    ],
)
def test_operators_of_other_types(name: str, operands: list[Told], how: dict[str, Any], dtypes: list[str]) -> None:
    check(name, operands, how, [Told([1], dtype) for dtype in dtypes])


# Tried in test_tflite_control.py.
CONTROL = [
    "ASSIGN_VARIABLE",
    "CALL",
    "CALL_ONCE",
    "DENSIFY",
    "IF",
    "READ_VARIABLE",
    "RNN",
    "SVDF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "VAR_HANDLE",
    "WHILE",
]


def test_boxes_that_are_kept() -> None:
    corners = RNG.uniform(0, 1, (20, 2)).astype(np.float32)
    boxes = constant(np.concatenate([corners, corners + RNG.uniform(0.2, 0.5, (20, 2))], 1).astype(np.float32))
    limits = [constant(np.int32(8)), constant(np.float32(0.3)), constant(np.float32(0.1))]
    results = [Told([1], "i32"), Told([1], "i32")]
    check("NON_MAX_SUPPRESSION_V4", [boxes, told(20), *limits], {}, results, of=np.abs)


def test_every_rule_is_tried() -> None:
    others = {
        "LOG",
        "SQRT",
        "RSQRT",
        "POW",
        "SPLIT",
        "SPLIT_V",
        "UNPACK",
        "ARG_MAX",
        "ARG_MIN",
        "TOPK_V2",
        "SHAPE",
        "RANK",
    }
    others |= {"WHERE", "REVERSE_SEQUENCE", "DYNAMIC_UPDATE_SLICE", "BROADCAST_ARGS", "MATRIX_DIAG", "BUCKETIZE"}
    others |= {"NON_MAX_SUPPRESSION_V4"}
    others |= {
        "CAST",
        "ONE_HOT",
        "RANGE",
        "DEQUANTIZE",
        "QUANTIZE",
        "FAKE_QUANT",
        "BITCAST",
        "BITWISE_XOR",
        "RIGHT_SHIFT",
    }
    assert TFLITE.rules.keys() - {row[0] for row in ROWS} - others - set(CONTROL) == set()
