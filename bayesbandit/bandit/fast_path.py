"""The compiled calls of one round, with their arguments: `Deciding` and `Learning`.

`deciding` of a bandit is None where Python must choose the arm, and `learning` where Python must
learn the reward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesbandit.checks import Array
from bayesbandit.history import Layout
from bayesbandit.kernels.propensities import ruled_out
from bayesbandit.kernels.rounds import DECISION
from bayesbandit.kernels.row_layout import TABULATED
from bayesbandit.policies import Policy, is_constant, rule, rule_parameters
from bayesbandit.runtime.compiling import without

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

COMPILED_CALLS = ("deciding", "learning")


class Deciding(NamedTuple):
    """`rounds.choose_one`, the layout of its row, and the arguments behind row and context.

    param, floor: the policy's number and minimum probability; None if they change.
    """

    choose_one: Callable[..., int]
    layout: Layout
    arms: Array
    available: Array
    settings: Array
    kind: int
    param: float | None
    floor: float | None
    stream: Array


class Learning(NamedTuple):
    """`rounds.observe_one`, the layout of its row, and the arguments behind row and reward."""

    observe_one: Callable[..., int]
    layout: Layout
    arms: Array
    settings: Array
    source: int
    clip: float
    history: Array
    n_rows: Array


def publish(bandit: Bandit) -> None:
    """Set the compiled calls' arguments to the bandit's current state."""
    vars(bandit).update(calls(bandit))


def calls(bandit: Bandit) -> dict[str, Any]:
    """Return the compiled calls with their arguments, by the name of the attribute.

    Both are None for a bandit that forgets: its clock goes on before each call.
    """
    kernel = bandit.kernel
    history = bandit.history
    learning = None
    if bandit.belief.clock is not None or kernel is None:
        return dict.fromkeys(COMPILED_CALLS)
    if bandit.reweighting is None:
        absent = kernel.functions.unreached(kernel.settings)
        if bandit.source != DECISION:
            absent = *absent, "BALANCED"
        kind = kind_played(bandit)
        absent = *absent, *ruled_out(TABULATED if kind is None else kind)
        learning = Learning(
            without(kernel.functions.observe_one, *absent), bandit.layout, kernel.arms,
            kernel.settings, bandit.source, bandit.clip, history.rows, history.count,
        )  # fmt: skip
    return {"deciding": deciding(bandit), "learning": learning}


def deciding(bandit: Bandit) -> Deciding | None:
    """Return the compiled call that decides, with its arguments; None if kernels do not decide."""
    kernel = bandit.kernel
    kind = kind_played(bandit)
    if kernel is None or kind is None:
        return None
    param, floor = bandit.param or (None, None)
    return Deciding(
        kernel.functions.choose_one, bandit.layout, kernel.arms, bandit.all_arms, kernel.settings,
        kind, param, floor, bandit.stream,
    )  # fmt: skip


def kind_played(bandit: Bandit) -> int | None:
    """Return the KIND of the rows that the kernels decide with the current belief and policy.

    None if the kernels do not decide.
    """
    if bandit.rule is None or (kernel := bandit.kernel) is None:
        return None
    return kernel.kind(bandit.rule, bandit.param)


def set_policy(bandit: Bandit, policy: Policy) -> None:
    """Choose by this policy from now on; store its parameters if they never change."""
    kind = rule(policy)
    K = len(bandit.arms)
    param = rule_parameters(policy, kind, bandit.t + 1, K) if is_constant(policy) else None
    vars(bandit).update(policy=policy, rule=kind, param=param)
