"""Why a node does not go to a device that is given files of ONNX."""

from __future__ import annotations

from hetnn import _core
from hetnn.backends.backend import Reason

# What only checks values or sizes, which a file of ONNX leaves out.
_CHECKS = ("require", "require_sizes")


def refusals(node: _core.Graph) -> list[Reason]:
    """Of a graph that ends in the node: nothing, or the reason."""
    from hetnn.exporters.onnx import refusal

    op = node.nodes()[-1]["op"]
    if op in _CHECKS:
        return [Reason("checks", op, "an operator that gives values", "a file of ONNX leaves checks out")]
    # Inputs that nothing reads only tell sizes, and are empty.
    read = set(node.nodes()[-1]["inputs"])
    values = [*(value for value in node.inputs if value[0] in read), *node.outputs]
    sizes = [size for _, _, shape in values for size in shape]
    if 0 in sizes:
        # Of such values ONNX Runtime 1.32 ends the process now and then.
        return [
            Reason("no_elements", op, "values that have elements", "nothing is computed of a value without elements")
        ]
    why = refusal(node)
    return [] if why is None else [Reason("no_onnx_form", op, "an operator of ONNX", why)]
