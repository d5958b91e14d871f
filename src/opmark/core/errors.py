"""The errors that OpMark raises for users, each with its exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of the `opmark` command, as documented in the command-line reference."""

    FINE = 0
    CHECK_FAILED = 1
    USAGE = 2
    CONTENT = 3
    UNAVAILABLE = 4
    NOTHING_SELECTED = 5
    INTERRUPTED = 130


class OpMarkError(Exception):
    """A failure, described by one clear sentence.

    `where` names the file and field (`suite.yaml: kinds.conv.count`), `hint` the next step for the user.
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
    """No registered extension or stored item has this name."""


class ContentError(OpMarkError):
    """A file's content is malformed or inconsistent."""

    exit_code = ExitCode.CONTENT


class PlacementError(ContentError):
    """A placement is not valid for its problem."""


class SubmissionError(ContentError):
    """A submission is malformed, or its answer is not a valid solution."""


class UnavailableError(OpMarkError):
    """This machine or installation lacks something that is needed."""

    exit_code = ExitCode.UNAVAILABLE


class MissingExtraError(UnavailableError):
    """An optional dependency is not installed."""


class DeviceError(UnavailableError):
    """A device is absent, busy or too small."""


class MeasurementError(OpMarkError):
    """A measurement failed."""


class CheckFailedError(OpMarkError):
    """A requested check failed."""


class NothingSelectedError(OpMarkError):
    """The selection is empty."""

    exit_code = ExitCode.NOTHING_SELECTED
