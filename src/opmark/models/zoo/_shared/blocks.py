"""Building blocks that several image networks of the zoo share."""

from torch import nn  # noqa: TID253 (imported only by the functions that build a network)


def conv_norm_relu(
    channels: int, features: int, kernel: int, *, stride: int = 1, groups: int = 1, activation: bool = True
) -> nn.Sequential:
    """A convolution that keeps the size (up to the stride), batch normalisation, and a ReLU."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels, features, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(features),
    ]
    if activation:
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)


def separable(channels: int, features: int, kernel: int = 3, *, stride: int = 1) -> nn.Sequential:
    """A depthwise convolution followed by a pointwise one, each normalised."""
    return nn.Sequential(
        conv_norm_relu(channels, channels, kernel, stride=stride, groups=channels),
        conv_norm_relu(channels, features, 1),
    )


def classifier(channels: int, classes: int = 1000) -> nn.Sequential:
    """Global average pooling and a linear layer."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
