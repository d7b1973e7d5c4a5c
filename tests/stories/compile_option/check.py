"""The option is an argument of the Python functions and a flag of the commands, read and refused like any other."""

import subprocess
import sys

import pytest

import hetnn

TEXT = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\n  %y = neg(%x) : f32[4]\n}"

hetnn.compile(TEXT, patience=3)
for bad in (10, "long"):
    with pytest.raises(hetnn.InvalidModel, match="patience"):
        hetnn.compile(TEXT, patience=bad)
done = subprocess.run([sys.executable, "-m", "hetnn", "compile", "--help"], capture_output=True, text=True, check=True)
assert "--patience N" in done.stdout, done.stdout
