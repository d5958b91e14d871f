"""`opmark leaderboards serve`: submissions by HTTP, and the site while it changes."""

from pathlib import Path

import click

from opmark.cli.commands.leaderboards._options import sandbox_options
from opmark.cli.options import FOLDER, workspace
from opmark.cli.text.silence import may_be_silent

STATE = ".serve"


@click.command(epilog="Example: opmark leaderboards serve --port 8080")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on: 0.0.0.0 for all.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="The port to listen on.")
@click.option(
    "--state", type=FOLDER, help="The folder of the queue, uploads and site. Default: .serve/ in the workspace."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="The number of problems at the same time."
)
@click.option(
    "--uploads-per-hour", type=click.IntRange(min=1), default=10, show_default=True, help="Uploads of one key."
)
@click.option(
    "--unfinished", type=click.IntRange(min=1), default=2, show_default=True, help="Unfinished submissions of one key."
)
@click.option(
    "--keys-per-day", type=click.IntRange(min=0), default=5, show_default=True, help="New keys for one address."
)
@sandbox_options
@click.pass_context
def serve(
    ctx: click.Context,
    *,
    host: str,
    port: int,
    state: Path | None,
    jobs: int,
    uploads_per_hour: int,
    unfinished: int,
    keys_per_day: int,
    kind: str,
    trusted: bool,
) -> None:
    """Take submissions by HTTP, and serve the site.

    A submission is a folder as tar.gz or zip. They are scored one after another in the sandbox. The queue outlives the
    server: what was waiting or running continues at the next start. Without a proxy for TLS, keep to this machine.
    """
    from opmark.leaderboards.serving.server import serve as run
    from opmark.leaderboards.serving.submission_queue import ServerLimits

    place = workspace(ctx)
    may_be_silent(ctx)
    click.echo(f"http://{host}:{port}/ (Ctrl-C ends it)", err=True)
    run(
        place.leaderboards,
        state or place.root / STATE,
        host=host,
        port=port,
        jobs=jobs,
        sandbox=kind,
        trusted=trusted,
        limits=ServerLimits(
            uploads_per_hour=uploads_per_hour, unfinished_per_key=unfinished, new_keys_per_day=keys_per_day
        ),
    )
