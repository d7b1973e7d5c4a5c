"""What an index shows of the package: README.md with whole links, and addresses beside it. scikit-build-core asks it.

The repository's address stands here and nowhere else: whoever publishes from another changes this line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/hetnn/hetnn"
ROOT = Path(__file__).resolve().parent.parent


def whole(link: str) -> str:
    """Where a link of the README leads from anywhere: to a page of a file or folder, to a picture's own bytes."""
    if "://" in link:
        return link
    if link.endswith((".png", ".svg")):
        return f"{REPOSITORY.replace('//github.com/', '//raw.githubusercontent.com/')}/main/{link}"
    kind = "blob" if Path(link.partition("#")[0]).suffix or link == "LICENSE" else "tree"
    return f"{REPOSITORY}/{kind}/main/{link}"


def description() -> str:
    """The README for readers who are not in the tree."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\]\(([^)]*)\)", lambda found: f"]({whole(found.group(1))})", text)


def dynamic_metadata(
    field: str, settings: Mapping[str, Any], project: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The fields `readme` and `urls` of pyproject.toml. scikit-build-core 0.11 does not tell of the project."""
    if field == "readme":
        return {"content-type": "text/markdown", "text": description()}
    return {
        "Homepage": REPOSITORY,
        "Documentation": whole("docs/README.md"),
        "Changelog": whole("CHANGELOG.md"),
        "Issues": f"{REPOSITORY}/issues",
    }
