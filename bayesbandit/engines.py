"""Engines: from a declared model and rows to its posterior, the toolkit's and your own.

    @bb.engines.sampler("mine", "what an effective draw costs")
    def mine(target, run):
        return …  # draws (chains, draws, D), or a Normal

Then `bb.fit(model, x, reward, engine="mine")` uses it; "auto" does where no earlier one fits.
"""

from bayesbandit.inference.base import Engine, NotThisEngine, Refusal
from bayesbandit.inference.draws import SampledDraws
from bayesbandit.inference.registry import choices, register, sampler
from bayesbandit.inference.target import Normal, Run, Target

__all__ = [
    "Engine",
    "Normal",
    "NotThisEngine",
    "Refusal",
    "Run",
    "SampledDraws",
    "Target",
    "choices",
    "register",
    "sampler",
]
