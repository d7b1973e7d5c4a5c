"""A node on its way to TOSA, and the registry of rules: the formulas are those of docs/numerics.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hetnn.exporters.registry import Rules
from hetnn.exporters.tosa.writer import FIRST, LAST, ONE, Tensor, Writer, factor_of, refuse

TOSA: Rules[Any] = Rules("TOSA")
exports = TOSA.exports
# How TOSA rounds what states no rounding, and the operators that have one.
UNSTATED = "single"
ROUNDED = frozenset(
    {"conv2d", "linear", "avg_pool2d", "adaptive_avg_pool2d", "max_pool2d", "quantize", "identity", "relu"}
    | {"add", "sub", "mul", "div", "prelu", "reshape", "permute", "pad", "slice"}
)


class Call:
    """A node: its operands with how they stand for reals, and its result's type."""

    def __init__(self, writer: Writer, row: dict[str, Any], inputs: Sequence[Tensor | None]) -> None:
        self.writer, self.row, self.inputs = writer, row, list(inputs)
        self.attrs: dict[str, Any] = row["attrs"]
        (given,) = row["output_types"]
        self.dtype: str = given["dtype"]
        self.shape: list[int] = given["shape"]
        self.result = given["quant"]
        self.quants = [part and part["quant"] for part in row["input_types"]]
        self.rounding = self.attrs.get("q_rounding", UNSTATED)
        if self.rounding == "half_even_fp32":
            self.rounding = "single"

    def __getitem__(self, k: int) -> Tensor:
        value = self.inputs[k]
        assert value is not None
        return value

    def optional(self, k: int) -> Tensor | None:
        """Input k, where it is there."""
        return self.inputs[k] if k < len(self.inputs) else None

    def shared(self, k: int) -> bool:
        """Whether others read input k too."""
        return self.writer.uses[self.row["inputs"][k]] > 1

    def scale(self, k: int = 0) -> float:
        """That of input k. Unsupported for an operand without one, or with several."""
        return float(self._of_tensor(self.quants[k])["scales"][0])

    def zero(self, k: int = 0) -> int:
        """The zero point of input k."""
        return int(self._of_tensor(self.quants[k])["zero_points"][0])

    @property
    def ends(self) -> tuple[float, int]:
        """Scale and zero point of the result."""
        quant = self._of_tensor(self.result)
        return float(quant["scales"][0]), int(quant["zero_points"][0])

    def _of_tensor(self, quant: Any) -> Any:
        if quant is None or len(quant["scales"]) != 1:
            refuse("of values that are no integers with one scale; TOSA's integers have one")
        return quant

    def integers(self, name: str) -> list[int]:
        """An attribute as numbers, two of them for height and width where one is given."""
        return [int(part) for part in self.attrs[name]]

    def last(self, k: int = 0) -> Tensor:
        """Input k, an image, channels last."""
        return self.writer.transpose(self[k], LAST)

    def first(self, y: Tensor) -> Tensor:
        """An image of channels last as the graph has it."""
        return self.writer.transpose(y, FIRST)

    def of_elements(self, write: Callable[..., Tensor], *operands: Tensor) -> Tensor:
        """An operator to which the order of axes is nothing, in the order that an operand was made in.

        write: given the operands, of equal rank, and the order that the result is transposed by.
        """
        orders = [self.writer.turned(x) for x in operands]
        plain = tuple(range(len(self.shape)))
        order = next((each for each in orders if each != plain and len(each) == len(plain)), plain)
        return self.writer.transpose(write(*(self.writer.in_order(x, order) for x in operands), order=order), order)


def rescale_result(call: Call, y: Tensor) -> Tensor:
    """From the scale of the first operand to that of the result."""
    scale, zero = call.ends
    if (call.scale(), call.zero(), y.dtype) == (scale, zero, call.dtype):
        return y
    factor = ONE if call.scale() == scale else factor_of(call.scale() / scale)
    ends = call.zero(), zero
    return call.of_elements(lambda x, order: call.writer.rescale(x, [factor], ends, call.dtype, call.rounding), y)


def demand_same_scale(call: Call) -> None:
    """Unsupported where the result has another scale or zero point than the first operand."""
    if call.quants[0] != call.result:
        refuse("from one scale to another")
