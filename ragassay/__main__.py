"""`python -m ragassay` is the command `ragassay`."""

from ragassay.jobs.cli.main import app

if __name__ == "__main__":
    app()
