"""What numpy calls hetnn's element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import Unsupported

NUMPY = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "bool": np.bool_,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
}
# Types of ml_dtypes, which comes with the extras that need them.
ML_DTYPES = {
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
    "i2": "int2",
    "u2": "uint2",
}


def numpy_type(dtype: str) -> Any:
    """What numpy calls an element type. Unsupported where ml_dtypes, which has it, is not installed."""
    if dtype in NUMPY:
        return NUMPY[dtype]
    try:
        import ml_dtypes
    except ModuleNotFoundError as error:
        raise Unsupported(f"constants of {dtype} need ml_dtypes. Install it.") from error
    return getattr(ml_dtypes, ML_DTYPES[dtype])
