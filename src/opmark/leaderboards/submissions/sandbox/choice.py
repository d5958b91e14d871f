"""Which sandbox a command uses: bubblewrap, or none for those who say so twice."""

from opmark.core.errors import UsageError
from opmark.leaderboards.submissions.sandbox.bubblewrap import Bubblewrap, require_bubblewrap
from opmark.leaderboards.submissions.sandbox.unprotected import Unprotected

Sandbox = Bubblewrap | Unprotected
SANDBOXES = ("bubblewrap", "none")


def sandbox(name: str = "bubblewrap", *, trusted: bool = False) -> Sandbox:
    """The sandbox called `name`. Raises `UnavailableError`, or `UsageError` for `none` unless trusted."""
    if name == "none":
        if not trusted:
            raise UsageError(
                "without a sandbox a submission can read and change everything that you can",
                hint="if you wrote it yourself, add --i-trust-this",
            )
        return Unprotected()
    require_bubblewrap()
    return Bubblewrap()
