"""The command line: `synaptune COMMAND`. One command, one file, imported when it is called."""

__all__ = ["main"]


def main() -> None:
    """Run the command that `sys.argv` names."""
    from synaptune.cli.application import application

    application()
