"""`python -m bayesbandit`: the command line."""

from bayesbandit.cli import app

app()
