"""The nine light ImageNet networks that the onnx wheel ships for its own tests: structure without weights.

ONNX files of opset 9 for one image of 224 × 224.
"""

import importlib.util
from pathlib import Path

from opmark.core.errors import MissingExtraError
from opmark.models.family import Family

_FILES = {
    "light-alexnet": ("bvlc_alexnet", "alexnet"),
    "light-densenet121": ("densenet121", "densenet"),
    "light-inception-v1": ("inception_v1", "inception"),
    "light-inception-v2": ("inception_v2", "inception"),
    "light-resnet50": ("resnet50", "resnet"),
    "light-shufflenet": ("shufflenet", "shufflenet"),
    "light-squeezenet": ("squeezenet", "squeezenet"),
    "light-vgg19": ("vgg19", "vgg"),
    "light-zfnet512": ("zfnet512", "zfnet"),
}


def onnx_file(model: str) -> Path:
    """The file inside the installed onnx package, found without importing it."""
    found = importlib.util.find_spec("onnx")
    if found is None or found.origin is None:
        raise MissingExtraError("the light networks come with onnx, which is not installed", hint="pip install onnx")
    return Path(found.origin).parent / "backend" / "test" / "data" / "light" / f"light_{_FILES[model][0]}.onnx"


FAMILY = Family(
    name="light",
    sizes=dict.fromkeys(_FILES, 224),
    labels={model: label for model, (_, label) in _FILES.items()},
    small=("light-squeezenet", "light-shufflenet"),
    packages=("onnx",),
    onnx_file=onnx_file,
)
