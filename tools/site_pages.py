"""Pages of the site that stand elsewhere than in docs/: notebooks, docstrings, and files beside it. A hook of mkdocs.

Notebooks are shown with the outputs that they are kept with.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parent.parent
# Page of the site -> the file of the tree that it is.
BESIDE = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md", "security.md": "SECURITY.md"}
# Modules whose public names are the interface, besides what `hetnn` itself offers.
MODULES = ("hetnn.backends", "hetnn.errors", "hetnn.inside.compare", "hetnn.onnxruntime", "hetnn.store")


def notebooks() -> dict[str, Path]:
    """Page of the site -> notebook, in their order."""
    return {f"tutorials/{path.stem}.md": path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}


def _output(output: dict[str, Any]) -> Iterator[str]:
    """What a cell gave: pictures as they are, a card with one in a frame of its own, else its text."""
    if output["output_type"] == "stream":
        yield f"```text\n{''.join(output['text']).rstrip()}\n```"
        return
    data = {kind: "".join(value) for kind, value in output.get("data", {}).items() if isinstance(value, str | list)}
    if "image/svg+xml" in data:
        # One line: an empty one would end the block for markdown.
        picture = re.sub(r"\s*\n\s*", " ", data["image/svg+xml"])
        yield f'<div class="notebook-output">{picture}</div>'
    elif "<svg" in data.get("text/html", ""):
        frame = html.escape(data["text/html"], quote=True).replace("\n", "&#10;")
        yield f'<div class="notebook-output"><iframe loading="lazy" title="output" srcdoc="{frame}"></iframe></div>'
    elif "image/png" in data:
        bits = data["image/png"].strip()
        yield f'<div class="notebook-output"><img alt="output" src="data:image/png;base64,{bits}"></div>'
    elif "text/plain" in data:
        yield f"```text\n{data['text/plain'].rstrip()}\n```"


def notebook_page(path: Path) -> str:
    """A notebook as markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            parts += _output(output)
    return "\n\n".join([*parts, f"This page is `notebooks/{path.name}`."]) + "\n"


def homes() -> dict[str, str]:
    """Public name of the package -> the module that holds it, as its `__init__` says."""
    tree = ast.parse((ROOT / "python/hetnn/__init__.py").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(one, ast.Name) and one.id == "_HOMES" for one in targets):
            assert isinstance(node, ast.Assign)
            found = ast.literal_eval(node.value)
    return found


def api_page() -> str:
    """A heading and the docstrings of every public name."""
    names = [f"::: {module}.{name}" for name, module in homes().items()]
    modules = [f"::: {module}\n    options:\n      show_root_full_path: true" for module in MODULES]
    head = "# Python\n\nWhat `hetnn` offers, from its docstrings; then modules that are imported by name."
    return "\n\n".join([head, *names, *modules]) + "\n"


def tutorials_index() -> str:
    """The list of the notebooks, each with its first words."""
    rows = ["# Tutorials", "", "Notebooks, run by the tests and kept with what they gave.", ""]
    for page, path in notebooks().items():
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        title, _, words = first.partition("\n")
        rows.append(
            f"- [{title.lstrip('# ')}]({Path(page).name}): {' '.join(words.split()).partition('. ')[0].rstrip('.')}."
        )
    return "\n".join(rows) + "\n"


def on_config(config: Any) -> Any:
    """The navigation's tutorials are the notebooks that are there."""
    for entry in config.nav:
        if isinstance(entry, dict) and entry.get("Tutorials") == "tutorials/":
            entry["Tutorials"] = ["tutorials/index.md", *notebooks()]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made."""
    made = {page: notebook_page(path) for page, path in notebooks().items()}
    made |= {page: (ROOT / path).read_text(encoding="utf-8") for page, path in BESIDE.items()}
    made |= {"api.md": api_page(), "tutorials/index.md": tutorials_index()}
    for page, text in made.items():
        hidden = page == "security.md"
        inclusion = InclusionLevel.NOT_IN_NAV if hidden else InclusionLevel.INCLUDED
        files.append(File.generated(config, page, content=text, inclusion=inclusion))
    return files


# From where the theme would take the worker of its search where pages are read from a disk; ours comes along.
WORKER = "https://unpkg.com/iframe-worker/shim"


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """A page asks for nothing that is elsewhere."""
    return output.replace(WORKER, "../" * page.file.dest_uri.count("/") + "assets/frame_worker.js")


def on_post_template(output: str, **_: Any) -> str:
    """Nor does the page of what is not there."""
    return output.replace(WORKER, "assets/frame_worker.js")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between docs/ and the files beside it lead to the pages that these are."""
    if page.file.src_uri in BESIDE:
        return re.sub(r"\]\(docs/", "](", markdown)
    if page.file.src_uri != "api.md":
        # Sizes such as [out_c][n] are no links by name, of which these pages have none.
        markdown = re.sub(
            r"(`[^`]*`)|\](?=\[)|\[(?=\^)", lambda found: found.group(1) or "\\" + found.group(), markdown
        )
    for target, path in BESIDE.items():
        markdown = markdown.replace(f"](../{path})", f"]({target})")
    return re.sub(r"\]\(\.\./notebooks/(\w+)\.ipynb\)", r"](tutorials/\1.md)", markdown)
