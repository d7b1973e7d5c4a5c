"""What a command hands back: one document for programs, one text for people, one exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DONE = 0
CHECK_FAILED = 1
BAD_INPUT = 2
UNSUPPORTED = 3
BUG = 4


@dataclass(frozen=True)
class Answer:
    """The outcome of a command. A command prints nothing on stdout itself; the main program prints one of the two.

    No document: the command's own line stands there already, since others wait for it while the command runs.
    """

    document: Mapping[str, Any] | None
    text: str
    status: int = DONE

    def print(self, as_json: bool) -> None:
        """Prints the document (`--json`) or the text on stdout."""
        if self.document is None:
            return
        body = json.dumps(self.document, allow_nan=False) if as_json else self.text
        if body:
            sys.stdout.write(body if body.endswith("\n") else body + "\n")
        sys.stdout.flush()


class BadUse(Exception):
    """The command line itself is wrong: an unknown option, a missing file name, a value outside the choices."""
