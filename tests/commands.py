"""Commands of the toolkit, run as a user would."""

from typer.testing import CliRunner

from bayesbandit.cli.app import app


def run(*words):
    """Run a command. `said` is what it printed, on one line."""
    found = CliRunner().invoke(app, [str(word) for word in words])
    found.said = " ".join(found.output.split())
    assert "Traceback" not in found.output
    return found


def columns(*texts):
    """Each text, as reward=clicked, as an option --column."""
    return [part for text in texts for part in ("--column", text)]
