"""The pass runs where its line stands: the graph after it is among the dumps."""

import os
import tempfile
from pathlib import Path

import hetnn

TEXT = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\n  %y = neg(%x) : f32[4]\n}"
with tempfile.TemporaryDirectory() as folder:
    os.environ["HETNN_DUMP"] = folder
    hetnn.compile(TEXT)
    names = [path.stem.partition("_")[2] for path in sorted(Path(folder).glob("*.ir"))]
assert names.index("name_outputs") == names.index("copy_outputs") + 1, names
