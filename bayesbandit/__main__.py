"""`python -m bayesbandit`: the command line."""

from bayesbandit.cli.app import app

app()
