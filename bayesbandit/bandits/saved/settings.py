"""Settings as plain values: what a file holds of a bandit's model, policy and balance.

The toolkit's own, and classes that have been registered by `savable`, are stored as their name and
their fields. Of anything else a file holds the name alone, and `load` takes the object again. A
file's word is never enough to import or to run something.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from bayesbandit.balance.kernel import KernelBalance
from bayesbandit.balance.propensity import InversePropensity, Unweighted
from bayesbandit.balance.residual import ResidualBalance
from bayesbandit.beliefs.linear import Ridge
from bayesbandit.beliefs.mixture.belief import PolicyMixture
from bayesbandit.beliefs.mixture.oracle import LinearOracle
from bayesbandit.model import RewardModel
from bayesbandit.policies import UCB, Boltzmann, EpsilonGreedy, Greedy, Thompson, TopTwo

DECLARED = "Declared"  # the kind of a declared model, which is loaded with PyMC
KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(
            Ridge,
            PolicyMixture,
            LinearOracle,
            Unweighted,
            InversePropensity,
            ResidualBalance,
            KernelBalance,
        ),
        *(Thompson, UCB, Greedy, EpsilonGreedy, Boltzmann, TopTwo),
    )
}
# settings that may be functions of t
FUNCTIONS = ("alpha", "epsilon", "temperature", "min_probability")


def savable[T](kind: type[T]) -> type[T]:
    """A decorator of a dataclass, a model, policy or balance of one's own: bandits are saved with
    its fields, and loaded wherever the class has been imported."""
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise TypeError(f"only a dataclass is stored by its fields; got {kind!r}")
    KINDS[_name(kind)] = kind
    return kind


def _name(kind: type) -> str:
    own = KINDS.get(kind.__name__) is kind
    return kind.__name__ if own else f"{kind.__module__}:{kind.__qualname__}"


def encode(value: Any) -> dict[str, Any]:
    """A dataclass as its name and fields; a function cannot be stored and becomes None."""
    kind = type(value)
    if kind.__name__ != DECLARED and KINDS.get(_name(kind)) is not kind:
        return {"kind": _name(kind), "foreign": True}
    settings = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    stored = {name: _stored(setting) for name, setting in settings.items()}
    return {"kind": DECLARED if kind.__name__ == DECLARED else _name(kind), **stored}


def _stored(setting: Any) -> Any:
    if isinstance(setting, RewardModel):
        return setting.to_yaml()
    if is_dataclass(setting) and not isinstance(setting, type):
        return encode(setting)
    return None if callable(setting) else setting


def _is_foreign(encoded: dict[str, Any]) -> bool:
    """Whether a file holds but the name of this or of one of its settings."""
    inner = [v for v in encoded.values() if isinstance(v, dict)]
    return bool(encoded.get("foreign")) or any(map(_is_foreign, inner))


def decode(encoded: dict[str, Any], part: str, given: Any = None) -> Any:
    """What `encode` stored as this part of a bandit, its model, policy or balance; `given` again,
    where a file does not hold it."""
    kind = encoded["kind"]
    if given is not None:
        same = type(given).__name__ == kind.split(":")[-1].split(".")[-1]
        if not (same if _is_foreign(encoded) else decode(encoded, part) == given):
            raise ValueError(f"the file's {part} is a {kind} of other settings than {given!r}")
        return given
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in encoded.items()}
    del settings["kind"]
    settings = {k: decode(v, part) if isinstance(v, dict) else v for k, v in settings.items()}
    if settings.get("foreign"):
        raise ValueError(
            f"the file does not hold the {part}, a {kind} of your own: give it again, "
            f"load(path, {part}=…); @bb.savable before its class lets files hold it"
        )
    if kind not in KINDS and ":" in kind:
        raise ValueError(f"the {part} is a {kind}, whose module must be imported before")
    if None in (settings.get(name, 0) for name in FUNCTIONS):
        raise ValueError(
            f"the {kind} policy's number was a function, which a file does not hold: "
            f"give the policy again, load(path, policy={kind}(…))"
        )
    return KINDS[kind](**settings)
