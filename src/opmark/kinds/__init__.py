"""Kernel families, one file each; `KINDS` finds them by name."""

from typing import Any

from opmark.core.kernel import Kernel
from opmark.core.kind import Kind
from opmark.core.registry import Registry
from opmark.core.work import Work

KINDS: Registry[Kind[Any]] = Registry("opmark.kinds", "KIND", "kind")


def kind_of(kernel: Kernel) -> Kind[Any]:
    """The family of `kernel`. Raises `UnknownNameError`."""
    return KINDS.load(kernel.kind)


def work_of(kernel: Kernel) -> Work:
    """FLOPs and bytes of one call of `kernel`."""
    kind = kind_of(kernel)
    return kind.work(kind.parse(kernel))
