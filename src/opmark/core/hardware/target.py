"""A target: a device, a runtime on it, and the runtime's configuration. Every latency belongs to a target."""

import re
from dataclasses import dataclass

from opmark.core.canonical import content_id
from opmark.core.errors import UsageError
from opmark.core.slug import Slug, SlugOrEmpty

# The option of targets whose process keeps freed memory for its next call.
KEEPS_MEMORY = "malloc-keep"

_NAME = re.compile(r"(?P<runtime>[a-z0-9]+(?:-[a-z0-9]+)*)-t(?P<threads>[1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`backend` is `onnxruntime`, `torch-eager` or `null`; `provider` is `cpu` or `cuda`, or empty if implied.

    `version` is the runtime's major.minor version; `options` are settings that affect latency (allocator, layout).
    """

    device: Slug
    backend: Slug
    provider: SlugOrEmpty = ""
    threads: int = 1
    version: str = ""
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name without the device, such as `onnxruntime-cpu-t1`."""
        provider = f"-{self.provider}" if self.provider else ""
        return f"{self.backend}{provider}-t{self.threads}"

    def __str__(self) -> str:
        return f"{self.device}/{self.name}"

    @property
    def keeps_memory(self) -> bool:
        """True if its process keeps freed memory, so that a call meets no new pages."""
        return KEEPS_MEMORY in self.options

    @property
    def id(self) -> str:
        """The hash of everything that affects latency."""
        return content_id(self)


def parse_target_name(name: str) -> tuple[str, int]:
    """Split `onnxruntime-cpu-t1` into (`onnxruntime-cpu`, 1). Raises `UsageError`."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise UsageError(f"{name!r} is not a target", hint="write it like onnxruntime-cpu-t1 or torch-eager-t1")
    return match["runtime"], int(match["threads"])
