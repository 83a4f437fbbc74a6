"""One answer to a declaration, judged; and what an error is taken for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bayesbandit.inference.base import NotThisEngine
from tests.hunt.case import Scene

BAD = ("wrong", "crash")


class Spared(Exception):
    """NUTS would have to compile."""


@dataclass(frozen=True)
class Verdict:
    """One answer, judged. what: "fit", "changed" or "stream". engine: that answered, or was asked.

    outcome: "right"; "wrong"; "crash", an error that names neither the model nor a variable;
    "refused"; "door", a refusal by the interface; "unmixed", draws that their own diagnostics
    warned of; "spared", NUTS not run; "unjudged". detail: of it.
    """

    what: str
    engine: str
    outcome: str
    detail: str = ""

    @property
    def bad(self) -> bool:
        """Whether this should never happen."""
        return self.outcome in BAD

    def __str__(self) -> str:
        return f"{self.what} by {self.engine}: {self.outcome}: {self.detail}"


def raised(scene: Scene, what: str, engine: str, error: Exception) -> Verdict:
    """A refusal with a reason; or a crash: an error that names neither model nor variable."""
    text = " ".join(str(error).split())
    if isinstance(error, Spared):
        return Verdict(what, "nuts", "spared")
    if isinstance(error, NotThisEngine):
        return Verdict(what, engine, "refused", text)
    if isinstance(error, ValueError | TypeError):
        named = re.search(r"'\w+'", text) or scene.model.name in text
        if named and "already exists" not in text:
            return Verdict(what, engine, "door", text[:200])
    return Verdict(what, engine, "crash", f"{type(error).__name__}: {text[:300]}")
