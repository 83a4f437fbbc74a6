"""Whether a declaration says the same of whatever rows come: it is built on rows without values.

One that reads its data while it is built (`x.get_value()`, `.eval()`, a GP whose range is that of
the contexts) fails there. On given rows it is a model like any other; of a stream it is none.
"""

from __future__ import annotations

import pymc as pm
import pytensor.tensor as pt

from bayesbandit.model import DATA, RewardModel


def reads_rows(model: RewardModel, n_features: int, n_arms: int | None) -> str:
    """How a declaration fails on rows without values; "" where it does not."""
    coords = {"feature": range(n_features)}
    if n_arms is not None:
        coords["arm"] = range(n_arms)
    with pm.Model(coords=coords, model=None) as built:
        inputs = {
            "x": pt.tensor(DATA["x"], shape=(None, n_features)),
            "reward": pt.tensor(DATA["reward"], shape=(None,)),
        }
        if model.takes_weight:
            inputs["weight"] = pt.tensor(DATA["weight"], shape=(None,))
        if n_arms is not None:
            inputs["arm"] = pt.tensor(DATA["arm"], shape=(None,), dtype="int32")
        built.add_coord("row", length=inputs["x"].shape[0])
        for v in inputs.values():
            built.register_data_var(v, dims=("row", "feature")[: v.type.ndim])
        try:
            model.declare(inputs, coords)
        except Exception as error:  # whatever a declaration does without values, which is its own
            text = str(error).strip().splitlines() or [""]
            return f"{type(error).__name__}: {text[0]}"
    return ""
