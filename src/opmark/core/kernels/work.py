"""The work of a kernel, independent of the hardware."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Arithmetic and minimal memory traffic of one call.

    `read_bytes` counts every input once, weights included; `weight_bytes` is the part of it that is constant.
    """

    flops: int
    read_bytes: int
    written_bytes: int
    weight_bytes: int = 0

    @property
    def moved_bytes(self) -> int:
        """Bytes read plus bytes written."""
        return self.read_bytes + self.written_bytes

    def __add__(self, other: "Work") -> "Work":
        return Work(
            flops=self.flops + other.flops,
            read_bytes=self.read_bytes + other.read_bytes,
            written_bytes=self.written_bytes + other.written_bytes,
            weight_bytes=self.weight_bytes + other.weight_bytes,
        )
