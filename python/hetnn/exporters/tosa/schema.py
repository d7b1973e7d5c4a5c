"""What of TOSA 1.0's schema hetnn writes: numbers of operators and types, and the fields of tables by their places.

The tests hold it against the schema in the package tosa-tools, which needs not be installed to write a file.
"""

from __future__ import annotations

# By their names. The number of an operator is that of its attribute's table.
ENUMERATIONS: dict[str, dict[str, int]] = {
    "DType": {"BOOL": 1, "INT8": 3, "INT16": 4, "INT32": 5, "INT48": 6},
    "RoundingMode": {"SINGLE_ROUND": 1, "DOUBLE_ROUND": 3},
    "NanPropagationMode": {"PROPAGATE": 1},
    "ResizeMode": {"NEAREST": 1, "BILINEAR": 2},
    "Op": {
        "AVG_POOL2D": 2,
        "CONV2D": 3,
        "DEPTHWISE_CONV2D": 5,
        "MATMUL": 7,
        "MAX_POOL2D": 8,
        "TRANSPOSE_CONV2D": 10,
        "CLAMP": 11,
        "ADD": 15,
        "ARITHMETIC_RIGHT_SHIFT": 16,
        "LOGICAL_LEFT_SHIFT": 22,
        "MAXIMUM": 26,
        "MINIMUM": 27,
        "MUL": 28,
        "SUB": 30,
        "TABLE": 31,
        "CLZ": 35,
        "REDUCE_MAX": 51,
        "REDUCE_SUM": 54,
        "CONCAT": 55,
        "PAD": 56,
        "RESHAPE": 57,
        "SLICE": 59,
        "TRANSPOSE": 61,
        "RESIZE": 64,
        "CAST": 65,
        "RESCALE": 66,
        "CONST": 67,
        "IDENTITY": 68,
        "CONST_SHAPE": 75,
    },
}

# Fields in the order of their places, with what each holds: a place in the file (at), or a number.
TABLES: dict[str, dict[str, str]] = {
    "TosaGraph": {"Version": "at", "Regions": "at"},
    "TosaRegion": {"Name": "at", "Blocks": "at"},
    "TosaBasicBlock": {
        **{"Name": "at", "Operators": "at", "Tensors": "at", "Inputs": "at", "Outputs": "at", "Shapes": "at"}
    },
    "TosaOperator": {
        **{"Op": "Uint32", "AttributeType": "Uint8", "Attribute": "at", "Inputs": "at", "Outputs": "at"},
        **{"Location": "at"},
    },
    "TosaTensor": {"Name": "at", "Shape": "at", "Type": "Uint32", "Data": "at"},
    "TosaShape": {"Name": "at", "Rank": "Uint32", "Data": "at"},
    "Version": {"_Major": "Int32", "_Minor": "Int32", "_Patch": "Int32", "_Draft": "Bool"},
    "OpLocation": {"Text": "at"},
    "AvgPool2dAttribute": {"Kernel": "at", "Stride": "at", "Pad": "at", "AccType": "Uint32"},
    "MaxPool2dAttribute": {"Kernel": "at", "Stride": "at", "Pad": "at", "NanMode": "Uint32"},
    "Conv2dAttribute": {"Pad": "at", "Stride": "at", "Dilation": "at", "LocalBound": "Bool", "AccType": "Uint32"},
    "DepthwiseConv2dAttribute": {
        **{"Pad": "at", "Stride": "at", "Dilation": "at", "LocalBound": "Bool", "AccType": "Uint32"}
    },
    "TransposeConv2dAttribute": {"OutPad": "at", "Stride": "at", "LocalBound": "Bool", "AccType": "Uint32"},
    "RescaleAttribute": {
        **{"Scale32": "Bool", "RoundingMode": "Uint32", "PerChannel": "Bool"},
        **{"InputUnsigned": "Bool", "OutputUnsigned": "Bool"},
    },
    "ClampAttribute": {"MinVal": "at", "MaxVal": "at", "NanMode": "Uint32"},
    "MaximumAttribute": {"NanMode": "Uint32"},
    "MinimumAttribute": {"NanMode": "Uint32"},
    "ConcatAttribute": {"Axis": "Int32"},
    "ReduceMaxAttribute": {"Axis": "Int32", "NanMode": "Uint32"},
    "ReduceSumAttribute": {"Axis": "Int32"},
    "ResizeAttribute": {"Mode": "Uint32"},
    "TransposeAttribute": {"Perms": "at"},
    "ArithmeticRightShiftAttribute": {"Round": "Bool"},
}


def number(enumeration: str, name: str) -> int:
    """A name of one of the schema's enumerations as its number."""
    return ENUMERATIONS[enumeration][name]


def attribute(kind: str) -> str:
    """The table of an operator's attribute, which may have no field."""
    named = {"MATMUL": "MatMul", "DEPTHWISE_CONV2D": "DepthwiseConv2d", "TRANSPOSE_CONV2D": "TransposeConv2d"}
    return named.get(kind, "".join(word.capitalize() for word in kind.split("_"))) + "Attribute"
