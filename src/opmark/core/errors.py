"""Every error a user can meet, each with its exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process returns; documented in the command-line reference."""

    FINE = 0
    CHECK_FAILED = 1
    USAGE = 2
    CONTENT = 3
    UNAVAILABLE = 4
    NOTHING_SELECTED = 5
    INTERRUPTED = 130


class OpMarkError(Exception):
    """A failure with one clear sentence, where it happened, and what to do about it.

    `where` names a file and a field (`suite.yaml: kinds.conv.count`), `hint` the next step.
    """

    exit_code = ExitCode.CHECK_FAILED

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class UsageError(OpMarkError):
    """An option or argument cannot be used as given."""

    exit_code = ExitCode.USAGE


class UnknownNameError(UsageError):
    """A name that no registered extension or stored item has."""


class ContentError(OpMarkError):
    """A file's content is malformed or inconsistent."""

    exit_code = ExitCode.CONTENT


class PlacementError(ContentError):
    """A placement is not valid for its problem."""


class SubmissionError(ContentError):
    """A submission is malformed, or returned something that is not a solution."""


class UnavailableError(OpMarkError):
    """Something this machine or installation does not have."""

    exit_code = ExitCode.UNAVAILABLE


class MissingExtraError(UnavailableError):
    """An optional dependency is not installed."""


class DeviceError(UnavailableError):
    """A device is absent, busy or too small."""


class MeasurementError(OpMarkError):
    """A measurement could not be taken."""


class CheckFailedError(OpMarkError):
    """A check that was asked for did not pass."""


class NothingSelectedError(OpMarkError):
    """The selection is empty."""

    exit_code = ExitCode.NOTHING_SELECTED
