"""The server's requests and answers, in JSON.

Names are those of OpenTelemetry's feature-flag evaluation event (variant, reason, version) and of
CloudEvents (id, time).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictInt,
    StrictStr,
)

from bayesbandit.checks import MAX_ABS_VALUE
from bayesbandit.store.rows import LONGEST_ID, check_id

Variant = StrictStr | StrictInt
Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID), AfterValidator(check_id)]
Real = Annotated[
    float, Field(strict=True, allow_inf_nan=False, ge=-MAX_ABS_VALUE, le=MAX_ABS_VALUE)
]


def _dated(value: object) -> object:
    """Return the text of a time; refuse a number, which may be of seconds or milliseconds."""
    if isinstance(value, str) and ":" in value:
        return value
    raise ValueError(f"must be a time with a zone, as 2026-11-22T18:00:00Z; got {value!r}")


Time = Annotated[AwareDatetime, BeforeValidator(_dated)]


class Message(BaseModel):
    """A message that must not have unknown fields."""

    model_config = ConfigDict(extra="forbid")


class Asked(Message):
    """A request to decide about one context."""

    context: dict[str, JsonValue] | list[JsonValue] | None = Field(
        None, description="Columns by name, or numbers; of arms that have features, a row for each."
    )
    arms: list[Variant] | None = Field(
        None, min_length=1, description="Those that may be chosen; none: all."
    )
    id: Id | None = Field(
        None,
        description="Of the decision, printable text. The same id again gives the same decision.",
    )


class Decided(BaseModel):
    """A decision as it is stored in the log."""

    id: str
    time: datetime
    variant: Variant = Field(description="The arm to show.")
    reason: Literal["split"] = "split"  # the bandit decided
    version: str = Field(description="Of the bandit.")
    propensity: float = Field(description="The probability of this arm.")
    probabilities: dict[str, float]


class Rewarded(Message):
    """A reward of a decision."""

    id: Id = Field(description="Of the decision.")
    value: Real
    time: Time | None = Field(None, description="When it was observed; none: now.")


class Came(BaseModel):
    """The status of a reward."""

    id: str
    status: Literal["timely", "late", "again"]


class Shown(Message):
    """A decision that was shown."""

    id: Id = Field(description="Of the decision.")


class Health(BaseModel):
    """The answer of a server that is well."""

    status: Literal["ok"]
    version: str


class Problem(BaseModel):
    """What is wrong, in one sentence."""

    detail: str
