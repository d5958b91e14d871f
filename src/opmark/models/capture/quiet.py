"""Silences libraries that print while they work."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

_LOGGERS = ("torch.onnx", "torch.export", "torch._subclasses.fake_tensor", "onnxscript", "onnx_ir")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings, no log lines of exporters, nothing on stdout, which carries the caller's data."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
