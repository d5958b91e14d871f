"""The clock of a GPU's processors, asked of the driver's management library in microseconds."""

import ctypes
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_SM_CLOCK = 1  # NVML_CLOCK_SM


class ClockReader:
    """Reads one GPU's clock; never sets anything. `library` is for tests."""

    def __init__(self, index: int = 0, library: Any = None) -> None:
        self._handle = ctypes.c_void_p()
        self._library = _loaded() if library is None else library
        if self._library is not None and (
            self._library.nvmlInit_v2()
            or self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(self._handle))
        ):
            self._library = None

    def mhz(self) -> float | None:
        """The clock now; None where the driver does not say."""
        if self._library is None:
            return None
        clock = ctypes.c_uint()
        if self._library.nvmlDeviceGetClockInfo(self._handle, ctypes.c_int(_SM_CLOCK), ctypes.byref(clock)):
            return None
        return float(clock.value)


def _loaded() -> Any:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
