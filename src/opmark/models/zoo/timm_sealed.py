"""Sealed families, from timm: nobody looks at their errors while predictors are made, and nothing is learned from them.

They were chosen by what builds and exports, before anything was predicted. None is in `benchmarks/strangers.py`, and
none shares a design with another family here. A family that has been looked at is no longer sealed.
"""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opmark.core.errors import MissingExtraError
from opmark.core.registry import install_hint
from opmark.models.family import Family

if TYPE_CHECKING:
    from opmark.models.family import Network

_DECLARED: list[Any] = []
# timm's name and family of each network, and the side of its images.
_NETWORKS = {
    "timm-cpubone-nano": ("cpubone_nano", "cpubone", 224),
    "timm-cspnext-tiny": ("cspnext_tiny", "cspnext", 224),
    "timm-davit-tiny": ("davit_tiny", "davit", 224),
    "timm-efficientvim-m1": ("efficientvim_m1", "efficientvim", 224),
    "timm-efficientvit-b0": ("efficientvit_b0", "efficientvit-mit", 224),
    "timm-efficientvit-m0": ("efficientvit_m0", "efficientvit-msra", 224),
    "timm-fasternet-t0": ("fasternet_t0", "fasternet", 224),
    "timm-gernet-s": ("gernet_s", "gernet", 224),
    "timm-hgnetv2-b0": ("hgnetv2_b0", "hgnet", 224),
    "timm-iformer-t": ("iformer_t", "iformer", 224),
    "timm-lowformer-b0": ("lowformer_b0", "lowformer", 224),
    "timm-nextvit-small": ("nextvit_small", "nextvit", 224),
    "timm-shvit-s1": ("shvit_s1", "shvit", 224),
    "timm-swiftformer-xs": ("swiftformer_xs", "swiftformer", 224),
}


def timm_package() -> ModuleType:
    """The package timm. Raises `MissingExtraError` where it, or torchvision, is not installed.

    timm imports torchvision. Its usual wheel is built for CUDA, so that under a CPU build of torch its operators are
    absent, and its import fails on the two that it describes to torch. No network here calls them: once declared, they
    do no harm.
    """
    import torch

    for package in ("timm", "torchvision"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(
                f"sealed networks need {package}, which is not installed", hint=install_hint("timm")
            )
    try:
        return importlib.import_module("timm")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    for name in [name for name in sys.modules if name.partition(".")[0] in {"timm", "torchvision"}]:
        del sys.modules[name]
    library: Any = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    # a library that is collected takes its operators with it
    _DECLARED.append(library)
    return importlib.import_module("timm")


def construct(model: str, batch: int, size: int) -> "Network":
    """The classifier, and a batch of images."""
    import torch

    return timm_package().create_model(_NETWORKS[model][0], pretrained=False), (torch.randn(batch, 3, size, size),)


FAMILY = Family(
    name="timm-sealed",
    sizes={model: side for model, (_, _, side) in _NETWORKS.items()},
    labels={model: label for model, (_, label, _) in _NETWORKS.items()},
    small=("timm-efficientvit-m0",),
    packages=("torch", "timm"),
    construct=construct,
    sealed=True,
)
