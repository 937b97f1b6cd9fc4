"""`python -m synaptune` is `synaptune`."""

from synaptune.cli import main

if __name__ == "__main__":
    main()
