"""`python -m hetnn` is the command line."""

from hetnn.cli import console

console()
