"""Texts for terminals: what would steer one is written out."""

from __future__ import annotations

import re

# Control characters but line feed and tab, line separators, and marks that turn the direction of writing.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with everything that would steer a terminal written out, as \\x1b."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
