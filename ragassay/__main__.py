"""`python -m ragassay` is the command `ragassay`."""

from ragassay.jobs.cli.main import main

if __name__ == "__main__":
    main()
