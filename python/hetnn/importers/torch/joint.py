"""Joint graphs of torch: a loss, and its gradients with respect to parameters, as exported programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch._decomp import core_aten_decompositions
from torch.export import ExportedProgram
from torch.export.experimental import _copy_graph_module_and_signature, _remove_detach_pass
from torch.export.exported_program import _decompose_exported_program
from torch.export.graph_signature import OutputKind
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from hetnn.errors import InvalidModel
from hetnn.importers.torch.decompositions import knows

Loss = Callable[[Any, Any], Any]


class _WithLoss(nn.Module):
    """Takes the model's arguments and then the targets, and returns the loss."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *args: Any) -> Any:
        *given, targets = args
        return self.loss(self.model(*given), targets)


class _OnceOnly(TorchFunctionMode):
    """Refuses gradients that a model or a loss takes itself: a step would need their gradients."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.autograd.grad:
            raise InvalidModel(
                "the loss is made of gradients (torch.autograd.grad): a step needs the gradient of a gradient, and "
                "torch exports none. Train with a loss without them."
            )
        return func(*args, **(kwargs or {}))


def _freeze_unread(program: ExportedProgram) -> None:
    """Parameters that nothing reads are not trained: those of layers without use, second names of shared ones."""
    for node in program.graph.nodes:
        if node.name in program.graph_signature.inputs_to_parameters and not node.users:
            node.meta["val"] = node.meta["val"].detach()


def with_gradients(model: nn.Module, args: Sequence[Any], loss: Loss) -> ExportedProgram:
    """The joint graph of a model that is trained; the last of `args` are the targets.

    Of a model in training mode every layer works in its own mode. One in evaluation mode is put into training mode, but
    for layers all of whose parameters are frozen. The model is left in the mode that it came in.
    InvalidModel where torch cannot export it, the loss is no scalar, or nothing in the model is trained.
    """
    whole = _WithLoss(model, loss)
    modes = [(layer, layer.training) for layer in model.modules()]
    try:
        if not model.training:
            _train(model)
        with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):  # its own gradient consists of operators
            warnings.filterwarnings("ignore", category=FutureWarning)
            with _OnceOnly():
                program = torch.export.export(whole, tuple(args))
            _freeze_unread(program)
            outputs = [spec.arg.name for spec in program.graph_signature.output_specs if _is_of_user(spec)]
            value = next(node.meta["val"] for node in program.graph.nodes if node.name == outputs[0])
            if len(outputs) != 1 or value.numel() != 1 or not value.is_floating_point():
                raise InvalidModel(
                    f"the loss must be one real number; it is {value.dtype}{list(value.shape)}. Reduce it by its mean."
                )
            return _differentiated(program)
    except InvalidModel:
        raise
    except Exception as error:  # torch raises many kinds for what it cannot trace
        raise InvalidModel(
            f"torch cannot export the training of {type(model).__qualname__}: {str(error).strip().splitlines()[0]}. "
            "Call loss(model(x), y).backward() once to see whether these arguments fit it."
        ) from error
    finally:
        for layer, training in modes:
            layer.training = training


def _differentiated(program: ExportedProgram) -> ExportedProgram:
    """The joint graph, as torch.export.experimental._export_forward_backward makes it; gradients that have operators of
    their own stay whole."""
    usual: dict[Any, Any] = dict(core_aten_decompositions())
    whole = {overload for overload in usual if "_backward" in str(overload) and knows(str(overload))}
    table = {overload: made for overload, made in usual.items() if overload not in whole}
    joint = _decompose_exported_program(
        program, cia_to_decomp={}, python_decomp_table=table, joint_loss_index=0, decompose_custom_triton_ops=False
    )
    module, signature = _copy_graph_module_and_signature(joint)
    _remove_detach_pass(module, signature)
    found: ExportedProgram = joint._update(module, signature)
    return found


def _train(layer: nn.Module) -> None:
    """Puts a layer and those in it into training mode, but for what is frozen."""
    parameters = list(layer.parameters())
    if parameters and not any(parameter.requires_grad for parameter in parameters):
        return
    layer.training = True
    for child in layer.children():
        _train(child)


def _is_of_user(spec: Any) -> bool:
    return bool(spec.kind == OutputKind.USER_OUTPUT)


def is_joint(program: ExportedProgram) -> bool:
    """Whether a program has a loss and gradients among its outputs."""
    return any(spec.kind == OutputKind.LOSS_OUTPUT for spec in program.graph_signature.output_specs)
