"""The three networks of MTCNN as plain torch modules, and the published weights that fit them.

Zhang et al., "Joint Face Detection and Alignment Using Multitask Cascaded Convolutional Networks", 2016. Modules are
named as in the weight files `pnet.pt`, `rnet.pt` and `onet.pt` in the PyPI package facenet-pytorch.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from torch import Tensor, nn


def _halve(kernel: int) -> nn.MaxPool2d:
    """The pooling of all three networks: stride 2, the last window may hang over the edge."""
    return nn.MaxPool2d(kernel, 2, ceil_mode=True)


class ProposalNet(nn.Module):
    """P-Net: slides a 12x12 window with stride 2 over an image [N,3,H,W].

    Returns the box correction [N,4,h,w] and the probabilities of (no face, face) [N,2,h,w] of each window.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 10, 3)
        self.prelu1 = nn.PReLU(10)
        self.pool1 = _halve(2)
        self.conv2 = nn.Conv2d(10, 16, 3)
        self.prelu2 = nn.PReLU(16)
        self.conv3 = nn.Conv2d(16, 32, 3)
        self.prelu3 = nn.PReLU(32)
        self.conv4_1 = nn.Conv2d(32, 2, 1)
        self.conv4_2 = nn.Conv2d(32, 4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.prelu2(self.conv2(x))
        x = self.prelu3(self.conv3(x))
        return self.conv4_2(x), torch.softmax(self.conv4_1(x), dim=1)


class RefinementNet(nn.Module):
    """R-Net: looks again at crops [N,3,24,24]. Returns box corrections [N,4] and probabilities [N,2]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 28, 3)
        self.prelu1 = nn.PReLU(28)
        self.pool1 = _halve(3)
        self.conv2 = nn.Conv2d(28, 48, 3)
        self.prelu2 = nn.PReLU(48)
        self.pool2 = _halve(3)
        self.conv3 = nn.Conv2d(48, 64, 2)
        self.prelu3 = nn.PReLU(64)
        self.dense4 = nn.Linear(576, 128)
        self.prelu4 = nn.PReLU(128)
        self.dense5_1 = nn.Linear(128, 2)
        self.dense5_2 = nn.Linear(128, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.pool2(self.prelu2(self.conv2(x)))
        x = self.prelu3(self.conv3(x))
        x = x.permute(0, 3, 2, 1).flatten(1)  # the weights were trained on columns first
        x = self.prelu4(self.dense4(x))
        return self.dense5_2(x), torch.softmax(self.dense5_1(x), dim=1)


class OutputNet(nn.Module):
    """O-Net: looks last at crops [N,3,48,48].

    Returns box corrections [N,4], landmarks [N,10] (five x, then five y, relative to the box) and probabilities [N,2].
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3)
        self.prelu1 = nn.PReLU(32)
        self.pool1 = _halve(3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.prelu2 = nn.PReLU(64)
        self.pool2 = _halve(3)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.prelu3 = nn.PReLU(64)
        self.pool3 = _halve(2)
        self.conv4 = nn.Conv2d(64, 128, 2)
        self.prelu4 = nn.PReLU(128)
        self.dense5 = nn.Linear(1152, 256)
        self.prelu5 = nn.PReLU(256)
        self.dense6_1 = nn.Linear(256, 2)
        self.dense6_2 = nn.Linear(256, 4)
        self.dense6_3 = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.pool2(self.prelu2(self.conv2(x)))
        x = self.pool3(self.prelu3(self.conv3(x)))
        x = self.prelu4(self.conv4(x))
        x = x.permute(0, 3, 2, 1).flatten(1)
        x = self.prelu5(self.dense5(x))
        return self.dense6_2(x), self.dense6_3(x), torch.softmax(self.dense6_1(x), dim=1)


def weights_folder() -> Path:
    """Where facenet-pytorch keeps its weights. The package itself is not imported: it would import torchvision."""
    spec = importlib.util.find_spec("facenet_pytorch")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "the weights of MTCNN were not found: install them with `pip install --no-deps facenet-pytorch==2.6.0`"
        )
    return Path(spec.origin).parent / "data"


def load_networks() -> tuple[ProposalNet, RefinementNet, OutputNet]:
    """The three networks with their published weights, in evaluation mode."""
    folder = weights_folder()
    networks = pnet, rnet, onet = ProposalNet(), RefinementNet(), OutputNet()
    for network, file in zip(networks, ("pnet.pt", "rnet.pt", "onet.pt"), strict=True):
        module: nn.Module = network
        module.load_state_dict(torch.load(folder / file, weights_only=True))
        module.eval()
    return pnet, rnet, onet


def export_networks(
    level: tuple[int, int] = (308, 308), candidates: tuple[int, int] = (153, 9), largest_side: int = 2048
) -> dict[str, torch.export.ExportedProgram]:
    """The networks as exported programs: P-Net for any image up to `largest_side`, the others for any batch.

    `level` (height, width) and `candidates` (for R-Net, for O-Net) are the sizes by which plans are weighed.
    """
    pnet, rnet, onet = load_networks()
    side = torch.export.Dim.DYNAMIC(min=13, max=largest_side)  # 12 is the window; a ceil_mode pool wants one more
    batch = torch.export.Dim.DYNAMIC(min=1, max=4096)
    cases: dict[str, tuple[nn.Module, tuple[int, ...], dict[int, object]]] = {
        "P-Net": (pnet, (1, 3, *level), {2: side, 3: side}),
        "R-Net": (rnet, (candidates[0], 3, 24, 24), {0: batch}),
        "O-Net": (onet, (candidates[1], 3, 48, 48), {0: batch}),
    }
    return {
        name: torch.export.export(module, (torch.zeros(shape),), dynamic_shapes=(dynamic,), strict=False)
        for name, (module, shape, dynamic) in cases.items()
    }
