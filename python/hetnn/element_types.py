"""What numpy calls hetnn's element types: one table, that of the bindings."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn import _runtime

# Those that numpy has itself.
NUMPY: dict[str, np.dtype[Any]] = _runtime.numpy_types()
# Of any. Unsupported where ml_dtypes, which has it, is not installed.
numpy_type = _runtime.numpy_type
