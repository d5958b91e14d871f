"""`python -m opmark`."""

from opmark.cli.main import main

if __name__ == "__main__":
    main()
