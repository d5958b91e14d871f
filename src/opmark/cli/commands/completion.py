"""`opmark completion`: a script that completes commands and names in a shell."""

import click
from click.shell_completion import get_completion_class


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script for the tab key in SHELL.

    \b
    bash:  opmark completion bash > ~/.local/share/bash-completion/completions/opmark
    zsh:   opmark completion zsh > "${fpath[1]}/_opmark"
    fish:  opmark completion fish > ~/.config/fish/completions/opmark.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    script = found(ctx.find_root().command, {}, "opmark", "_OPMARK_COMPLETE")
    click.echo(script.source())


COMMAND = completion
