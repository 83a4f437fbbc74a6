"""The compiled calls of one round, with their arguments: a tuple of the bandit for each.

`deciding` is None where Python must choose the arm, and `learning` where Python must learn the
reward. In `deciding`, the policy's number and minimum probability are None if they change from
round to round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayesbandit.beliefs.base import Kernel
from bayesbandit.kernels.propensities import ruled_out
from bayesbandit.kernels.rounds import DECISION
from bayesbandit.kernels.row_layout import TABULATED
from bayesbandit.policies import Policy, is_constant, numbers, rule
from bayesbandit.runtime.compiling import without

if TYPE_CHECKING:
    from bayesbandit.bandit.bandit import Bandit

CALLS = ("deciding", "learning")
Deciding = tuple[Any, ...]  # the kernel, the layout, and the kernel's arguments in its order


def publish(bandit: Bandit) -> None:
    """Set the compiled calls' arguments to the bandit's current state."""
    vars(bandit).update(calls(bandit))


def calls(bandit: Bandit) -> dict[str, tuple[Any, ...] | None]:
    """Return the compiled calls with their arguments, by the name of the attribute.

    Both are None for a bandit that forgets: its clock goes on before each call.
    """
    kernel, history, learning = bandit.kernel, bandit.history, None
    if bandit.belief.clock is not None or kernel is None or not kernel.plain:
        return dict.fromkeys(CALLS)
    if bandit.reweighting is None:
        source, kept = (bandit.source, bandit.clip), (history.rows, history.count)
        call, arrays = observer(bandit, kernel), (kernel.arms, kernel.settings)
        learning = call, bandit.layout, *arrays, *source, *kept
    return dict(zip(CALLS, (deciding(bandit), learning), strict=True))


def deciding(bandit: Bandit) -> Deciding | None:
    """Return the compiled call that decides, with its arguments; None if kernels do not decide."""
    kernel, kind = bandit.kernel, kind_played(bandit)
    if kernel is None or not kernel.plain or kind is None:
        return None
    rule, choose_one = (kind, *(bandit.param or (None, None))), kernel.functions.choose_one
    arrays = kernel.arms, bandit.all_arms, kernel.settings
    return choose_one, bandit.layout, *arrays, *rule, bandit.stream


def observer(bandit: Bandit, kernel: Kernel) -> Any:
    """Return the compiled function by which a belief learns one reward."""
    functions = kernel.functions
    unreached = functions.unreached(kernel.settings)
    if bandit.source != DECISION:
        return without(functions.observe_given, *unreached)
    kind = kind_played(bandit)
    rules = ruled_out(TABULATED if kind is None else kind)
    return without(functions.observe_one, *unreached, *rules)


def kind_played(bandit: Bandit) -> int | None:
    """Return the KIND of the rows that the kernels decide with the current belief and policy.

    None if the kernels do not decide.
    """
    if bandit.rule is None or (kernel := bandit.kernel) is None:
        return None
    return kernel.kind(bandit.rule, bandit.param)


def set_policy(bandit: Bandit, policy: Policy) -> None:
    """Choose by this policy from now on; store its numbers if they never change."""
    kind = rule(policy)
    param = numbers(policy, kind, bandit.t + 1, len(bandit.arms)) if is_constant(policy) else None
    vars(bandit).update(policy=policy, rule=kind, param=param)
