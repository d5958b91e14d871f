"""Small image classifiers of the three classic designs: plain, residual, inverted residual.

The few constants of the network sum are fitted on them, so that no named network is needed for that.

VGG-like, ResNet-like and MobileNetV2-like networks at a quarter to a half of the usual width.
"""

from typing import TYPE_CHECKING

from opmark.models.family import Family

if TYPE_CHECKING:
    from torch import nn

    from opmark.models.family import Network


def construct(model: str, batch: int, size: int) -> "Network":
    """The classifier and a batch of square images."""
    import torch

    makers = {
        "plain-tiny": lambda: _vgg((8, 16)),
        "vgg-small": lambda: _vgg((32, 64, 128, 256, 256)),
        "resnet-small": lambda: _resnet((32, 64, 128, 256), bottleneck=False),
        "bottleneck-small": lambda: _resnet((128, 256, 512, 1024), bottleneck=True),
        "mobilenet-small": _mobilenet,
        "squeeze-small": _squeeze,
    }
    return makers[model](), (torch.randn(batch, 3, size, size),)


def _vgg(widths: tuple[int, ...]) -> "nn.Module":
    from torch import nn

    from opmark.models.zoo._shared.blocks import classifier

    layers: list[nn.Module] = []
    channels = 3
    for width in widths:
        for features in (width, width):
            layers += [nn.Conv2d(channels, features, 3, padding=1), nn.ReLU(inplace=True)]
            channels = features
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, classifier(channels))


def _resnet(widths: tuple[int, ...], *, bottleneck: bool) -> "nn.Module":
    import torch
    from torch import nn

    from opmark.models.zoo._shared.blocks import classifier, conv_norm_relu

    class ResidualBlock(nn.Module):
        def __init__(self, channels: int, features: int, stride: int) -> None:
            super().__init__()
            if bottleneck:
                inner = features // 4
                self.path = nn.Sequential(
                    conv_norm_relu(channels, inner, 1),
                    conv_norm_relu(inner, inner, 3, stride=stride),
                    conv_norm_relu(inner, features, 1, activation=False),
                )
            else:
                self.path = nn.Sequential(
                    conv_norm_relu(channels, features, 3, stride=stride),
                    conv_norm_relu(features, features, 3, activation=False),
                )
            same = channels == features and stride == 1
            self.shortcut = (
                nn.Identity() if same else conv_norm_relu(channels, features, 1, stride=stride, activation=False)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.path(x) + self.shortcut(x))

    channels = 32
    layers: list[nn.Module] = [conv_norm_relu(3, channels, 7, stride=2), nn.MaxPool2d(3, stride=2, padding=1)]
    for stage, width in enumerate(widths):
        for block in range(2):
            layers.append(ResidualBlock(channels, width, 2 if stage and not block else 1))
            channels = width
    return nn.Sequential(*layers, classifier(channels))


def _mobilenet() -> "nn.Module":
    import torch
    from torch import nn

    from opmark.models.zoo._shared.blocks import classifier

    def unit(channels: int, features: int, kernel: int, stride: int = 1, groups: int = 1) -> "nn.Sequential":
        return nn.Sequential(
            nn.Conv2d(channels, features, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(features),
            nn.ReLU6(inplace=True),
        )

    class Inverted(nn.Module):
        def __init__(self, channels: int, features: int, stride: int) -> None:
            super().__init__()
            inner = 4 * channels
            self.path = nn.Sequential(
                unit(channels, inner, 1),
                unit(inner, inner, 3, stride, inner),
                nn.Conv2d(inner, features, 1, bias=False),
                nn.BatchNorm2d(features),
            )
            self.same = stride == 1 and channels == features

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.path(x)
            return x + y if self.same else y

    layers: list[nn.Module] = [unit(3, 24, 3, 2)]
    channels = 24
    for features, stride in ((16, 1), (32, 2), (32, 1), (48, 2), (48, 1), (96, 2), (96, 1), (96, 1), (192, 2)):
        layers.append(Inverted(channels, features, stride))
        channels = features
    return nn.Sequential(*layers, unit(channels, 768, 1), classifier(768))


def _squeeze() -> "nn.Module":
    import torch
    from torch import nn

    from opmark.models.zoo._shared.blocks import classifier

    class Fire(nn.Module):
        def __init__(self, channels: int, squeezed: int, expanded: int) -> None:
            super().__init__()
            self.squeeze = nn.Conv2d(channels, squeezed, 1)
            self.left = nn.Conv2d(squeezed, expanded, 1)
            self.right = nn.Conv2d(squeezed, expanded, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.squeeze(x))
            return torch.cat([torch.relu(self.left(x)), torch.relu(self.right(x))], dim=1)

    layers: list[nn.Module] = [nn.Conv2d(3, 48, 3, 2, 1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 48
    for index, (squeezed, expanded) in enumerate(((12, 48), (12, 48), (24, 96), (24, 96), (40, 160), (48, 192))):
        layers.append(Fire(channels, squeezed, expanded))
        channels = 2 * expanded
        if index % 2:
            layers.append(nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(*layers, nn.Conv2d(channels, 256, 1), classifier(256))


FAMILY = Family(
    name="plain-cnn",
    sizes={
        "plain-tiny": 32,
        "vgg-small": 128,
        "resnet-small": 160,
        "bottleneck-small": 160,
        "mobilenet-small": 160,
        "squeeze-small": 160,
    },
    small=("plain-tiny",),
    construct=construct,
)
