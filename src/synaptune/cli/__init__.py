"""The command line: `synaptune COMMAND`. One command, one file, imported when it is called."""

__all__ = ["main"]


def main() -> None:
    """Run the command that `sys.argv` names."""
    try:
        from synaptune.cli.application import application

        application()
    except KeyboardInterrupt:
        # Ctrl-C before a command has begun, or while it is put away.
        raise SystemExit(130) from None
