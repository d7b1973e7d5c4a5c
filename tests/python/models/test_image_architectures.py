"""Networks of the timm package, a U-Net, and recurrent and temporal ones: equal to torch on both targets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import hetnn
from models import nets

TARGETS = ("cpu", "cpu+relu-only")
# The first runs everywhere; the others are as large as they are used, and slow.
TIMM = {
    "resnet18": 64,
    "mobilenetv4_conv_small_050": 64,
    "test_convnext": 96,
    "test_efficientnet": 64,
    "test_resnet": 64,
    "test_byobnet": 64,
    "test_vit": 160,
}
LARGE = {
    "resnet50": 224,
    "efficientnet_b0": 224,
    "convnext_tiny": 224,
    "regnety_008": 224,
    "densenet121": 224,
    "mobilenetv4_conv_medium": 256,
    "maxvit_nano_rw_256": 256,
}


def close(mine: Tensor, wanted: Tensor) -> bool:
    return bool(((mine - wanted).abs() <= 1e-3 * wanted.abs() + 1e-4 * wanted.abs().max()).all())


def check(module: nn.Module, args: tuple[Tensor, ...], shapes: object = None, *others: tuple[Tensor, ...]) -> None:
    """Equal to eager torch on the example and on other inputs, whose sizes may differ where `shapes` says so."""
    program = torch.export.export(module, args, dynamic_shapes=shapes, strict=False)
    for target in TARGETS:
        run = hetnn.compile(program, target=target)
        for given in (args, *others):
            with torch.no_grad():
                wanted = module(*given)
            assert close(run(*given), wanted)


def made(name: str) -> nn.Module:
    nets.declare_torchvision_operators()
    import timm

    torch.manual_seed(7)
    module: nn.Module = timm.create_model(name, pretrained=False)
    nets.settle_batch_norms(module)
    return module.eval()


@pytest.mark.parametrize("name", TIMM)
def test_timm(name: str) -> None:
    side = TIMM[name]
    batch = Dim("batch", min=1, max=8)
    image = torch.randn(2, 3, side, side)
    check(made(name), (image,), ({0: batch},), (image[:1],), (torch.randn(3, 3, side, side),))


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_timm_as_used(name: str) -> None:
    check(made(name), (torch.randn(1, 3, LARGE[name], LARGE[name]),))


class UNet(nn.Module):
    """Two levels down and up, what was seen on the way down joined on the way up."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([self._block(3, 8), self._block(8, 16)])
        self.bottom = self._block(16, 32)
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.join = nn.ModuleList([self._block(32, 16), self._block(16, 8)])
        self.head = nn.Conv2d(8, 2, 1)

    @staticmethod
    def _block(given: int, made: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        seen = []
        for block in self.down:
            x = block(x)
            seen.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([up(x), seen.pop()], 1))
        return self.head(x)


class Recurrent(nn.Module):
    """Two layers both ways, and a head on the last step."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.cell = kind(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.cell(x)
        return self.head(states[:, -1])


class Temporal(nn.Module):
    """Convolutions that look back alone, each twice as far, with a way around."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(6, 6, 3, dilation=2**k) for k in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for k, layer in enumerate(self.layers):
            x = x + torch.relu(layer(nn.functional.pad(x, (2 ** (k + 1), 0))))
        return x


def test_unet() -> None:
    torch.manual_seed(7)
    module = UNet()
    nets.settle_batch_norms(module)
    check(module.eval(), (torch.randn(2, 3, 16, 24),), ({0: Dim("batch", min=1, max=4)},), (torch.randn(1, 3, 16, 24),))


def test_unet_on_images_of_any_size() -> None:
    torch.manual_seed(7)
    height, width = Dim("h", min=2, max=16), Dim("w", min=2, max=16)
    check(UNet().eval(), (torch.randn(1, 3, 16, 24),), ({2: 4 * height, 3: 4 * width},), (torch.randn(1, 3, 8, 40),))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent(kind: Callable[..., nn.Module]) -> None:
    torch.manual_seed(7)
    check(Recurrent(kind).eval(), (torch.randn(2, 5, 6),), ({0: Dim("n", min=1, max=8)},), (torch.randn(4, 5, 6),))


def test_temporal() -> None:
    torch.manual_seed(7)
    shapes = ({0: Dim("n", min=1, max=8), 2: Dim("t", min=4, max=64)},)
    check(Temporal().eval(), (torch.randn(2, 6, 20),), shapes, (torch.randn(1, 6, 33),))
