"""The option is an argument of the Python functions and a flag of the commands, read and refused like any other."""

import subprocess
import sys

import hetnn

TEXT = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\n  %y = neg(%x) : f32[4]\n}"

hetnn.compile(TEXT, patience=3)
for bad, message in ((10, "patience"), ("long", "patience")):
    try:
        hetnn.compile(TEXT, patience=bad)
    except hetnn.InvalidModel as error:
        assert message in str(error), error
    else:
        raise AssertionError(f"patience={bad!r} was taken")
done = subprocess.run([sys.executable, "-m", "hetnn", "compile", "--help"], capture_output=True, text=True, check=True)
assert "--patience N" in done.stdout, done.stdout
