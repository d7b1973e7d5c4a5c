"""An executable against a reference, value by value: the first that is beyond its bound, and the noise of each."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hetnn.arrays import as_arrays
from hetnn.errors import InvalidModel
from hetnn.inside.references import Reference, reference_of
from hetnn.inside.values import OWN, names_of, values_of
from hetnn.progress import Progress, announce, counted
from hetnn.report.card import framed
from hetnn.report.rows import Rows
from hetnn.report.shown import Shown
from hetnn.report.text import count

if TYPE_CHECKING:
    from hetnn.executable import Executable

Array = NDArray[Any]

# Greatest difference over the greatest magnitude of a value, by the type that its node computes in: what rounding makes
# of a network some hundred layers deep. Integers and truths are the same, or wrong.
BOUNDS = {"f64": 1e-9, "f32": 1e-3, "f16": 2e-2, "bf16": 1e-1}
OF_NARROWER = 0.25  # of what is kept in fewer bits: codes of a quantized type, floats of a byte
COLUMNS = ("node", "op", "device", "difference", "bound", "noise_db", "source", "what")
_NOISELESS_DB = 300.0


@dataclass(frozen=True)
class First:
    """The first node beyond its bound. `difference` is over the greatest magnitude of the reference's value; infinite
    for a NaN or an infinity that the reference has not, and for another shape.
    """

    node: str
    difference: float
    bound: float
    row: dict[str, Any]


class Comparison(Shown):
    """What `Executable.compare` found: `first` or None, and `rows`, one a value, in the model's order.

    Of each row `node, op, device, subgraph, module, loc, difference, bound, noise_db` (power of the reference's value
    over that of what differs; 300 where nothing does), `nan`, `inf` (how many of the executable's numbers are, where
    the reference's are not), `overflow` (of those, infinities where the type's largest number was passed), `source`
    ("own": the executable computed it; "apart": it has no buffer there, and the model was compiled once more with it as
    an output) and `what`, a few words for a row that is beyond.
    """

    def __init__(self, rows: Rows, reference: str, skipped: int) -> None:
        self.rows = rows
        self.reference = reference
        self.skipped = skipped  # values of the reference that the executable has no value of the same name for
        beyond = next((row for row in rows if row["what"]), None)
        self.first = None if beyond is None else First(beyond["node"], beyond["difference"], beyond["bound"], beyond)

    def __str__(self) -> str:
        return f"{self.rows}\n{self._sentence()}"

    __repr__ = __str__

    def _sentence(self) -> str:
        beside = f"{count(len(self.rows), 'value')} beside {self.reference}"
        if self.skipped:
            beside += f" ({self.skipped} of its have no counterpart)"
        if self.first is None:
            return f"{beside}: all within their bounds"
        where = self.first.row.get("loc") or self.first.row.get("module")
        at = f", {where}" if where else ""
        return f"{beside}: the first beyond its bound is '{self.first.node}' ({self.first.row['what']}{at})"

    def _card(self) -> str:
        return framed(f"<p>{html.escape(self._sentence())}</p>", self.svg(), self.rows._card())

    def svg(self) -> str:
        """A picture of the noise: a bar a value, in the model's order, shorter where more differs."""
        from hetnn.inside.noise_picture import noise_bars

        return noise_bars([(row["node"], row["noise_db"], bool(row["what"])) for row in self.rows])

    def to_csv(self, path: Any = None) -> str:
        """The rows as text with commas."""
        return self.rows.to_csv(path)

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.rows.to_dataframe()


def compare(
    executable: Executable, reference: Any, inputs: Sequence[Any], bound: float | None, progress: Progress
) -> Comparison:
    """As Executable.compare."""
    if bound is not None and not bound >= 0:
        raise InvalidModel(f"bound must be a number of at least 0; found {bound!r}.")
    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    arrays = as_arrays(list(executable._arguments.passed(tuple(given), {})), executable._arguments.called)
    beside = reference_of(reference, executable, given, arrays, progress)
    return compare_with(executable, beside, arrays, bound, progress)


def compare_with(
    executable: Executable, reference: Reference, arrays: Sequence[Array], bound: float | None, progress: Progress
) -> Comparison:
    """With a reference that ran on the same arrays."""
    known = names_of(executable)
    names = [name for name in reference.names if known.value(name) == name]
    if not names:
        raise InvalidModel(
            f"{reference.called} has no value that is called as one of the executable; it has "
            f"{', '.join(reference.names[:3]) or 'none'}, the executable {', '.join(known.order[:3]) or 'none'}."
        )
    wanted = reference.values(names)
    _, got = values_of(executable, arrays, names, progress=progress)
    places = _places(executable.report(format="dict"))
    rows = []
    with counted(progress, "compare"):
        for k, name in enumerate(names):
            announce(k, len(names))
            rows.append(_row(places.get(name, {}), name, wanted[name], got[name].array, bound, got[name].source))
    skipped = len(reference.names) - len(names)
    return Comparison(Rows(rows, COLUMNS, "there is no value to compare"), reference.called, skipped)


def _places(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The report's row of every node, those that loops repeat among them."""
    within: dict[str, Mapping[str, Any]] = {}
    for body in report["bodies"]:
        within |= {row["node"]: {**row, "subgraph": None, "into": ""} for row in body["report"]["graph"]}
    return within | {row["node"]: row for row in report["graph"]}


def compare_values(
    wanted: Mapping[str, Array],
    got: Mapping[str, Array],
    nodes: Sequence[Mapping[str, Any]],
    called: str,
    bound: float | None,
) -> Comparison:
    """Arrays of the same names; `nodes` are the rows of what computed them."""
    places = {row["node"]: row for row in nodes}
    rows = [_row(places.get(name, {}), name, array, got[name], bound, OWN) for name, array in wanted.items()]
    return Comparison(Rows(rows, COLUMNS, "there is no value to compare"), called, len(got) - len(wanted))


def _row(
    place: Mapping[str, Any], name: str, wanted: Array, got: Array, bound: float | None, source: str
) -> dict[str, Any]:
    row = {"node": name, **{key: place.get(key, "") for key in ("op", "device", "module", "loc")}}
    row |= {"subgraph": place.get("subgraph"), "into": place.get("into", ""), **_difference(wanted, got)}
    limit = _bound(place, wanted, bound)
    return row | {"bound": limit, "source": source, "what": _what(row, limit)}


def _bound(place: Mapping[str, Any], wanted: Array, bound: float | None) -> float:
    if bound is not None:
        return bound
    if wanted.dtype.kind not in "fV":
        return 0.0
    kind = place.get("dtype", "")
    return BOUNDS.get(kind, OF_NARROWER) if kind else BOUNDS["f32"]


def _what(row: dict[str, Any], bound: float) -> str:
    """A few words for what is beyond the bound; none where nothing is."""
    if row["shapes"]:
        return f"of another shape: {row['shapes']}"
    if row["overflow"]:
        return f"{row['overflow']} numbers overflow"
    if row["nan"]:
        return f"{row['nan']} numbers are NaN"
    if row["inf"]:
        return f"{row['inf']} numbers are infinite"
    return f"{row['difference']:.3g}, bound {bound:g}" if row["difference"] > bound else ""


def _difference(wanted: Array, got: Array) -> dict[str, Any]:
    out: dict[str, Any] = {
        "difference": 0.0,
        "noise_db": _NOISELESS_DB,
        "nan": 0,
        "inf": 0,
        "overflow": 0,
        "shapes": "",
    }
    if wanted.shape != got.shape:
        shapes = f"{list(got.shape)} instead of {list(wanted.shape)}"
        return out | {"difference": np.inf, "noise_db": -_NOISELESS_DB, "shapes": shapes}
    a, b = _wide(wanted).reshape(-1), _wide(got).reshape(-1)
    new = np.isfinite(a) & ~np.isfinite(b)
    out["nan"] = int(np.sum(np.isnan(b) & ~np.isnan(a)))
    out["inf"] = int(np.sum(np.isinf(b) & np.isfinite(a)))
    if out["inf"] and got.dtype.kind == "f":
        out["overflow"] = int(np.sum(np.isinf(b) & (np.abs(a) > float(np.finfo(got.dtype).max) / 2)))
    finite = np.isfinite(a) & np.isfinite(b)
    x, y = a[finite], b[finite]
    if x.size:
        peak = float(np.abs(x).max())
        error = x - y
        out["difference"] = float(np.abs(error).max()) / (peak or 1.0)
        signal, noise = float(x @ x), float(error @ error)
        if noise > 0:
            db = 10 * np.log10(max(signal, 1e-300) / noise)
            out["noise_db"] = float(np.clip(db, -_NOISELESS_DB, _NOISELESS_DB))
    if new.any() or bool(np.any(np.isinf(a) & (a != b))):
        out["difference"] = np.inf
    return out


def _wide(array: Array) -> Array:
    return array.astype(np.float64)
