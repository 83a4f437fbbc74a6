"""`bandit.predict`: what is believed of mean rewards at any contexts, and nothing changes."""

import numpy as np
import pandas as pd
import pytest

import bayesbandit as bb


def test_contexts_are_as_in_choose(rng):
    frame = pd.DataFrame({"age": [20.0, 60.0], "country": ["at", "de"]})
    bandit = bb.LinTS(["a", "b"], encoder=bb.Encoder.fit(frame))
    bandit.update(frame, ["a", "b"], [1.0, 0.0])
    both = bandit.predict(frame).mean
    np.testing.assert_array_equal(bandit.predict(frame.to_dict("records")).mean, both)
    np.testing.assert_allclose(bandit.predict(dict(frame.iloc[0])).mean, both[:1], rtol=1e-12)
    with pytest.raises(ValueError, match="age"):
        bandit.predict({"country": "at"})
    assert bb.Bandit(2, bb.Ridge(), bb.Thompson(), n_features=0).predict().mean.shape == (1, 2)
    shared = bb.Bandit(2, bb.Shared(bb.Ridge()), bb.Thompson(), n_features=3)
    assert shared.predict(rng.normal(size=(2, 3))).mean.shape == (1, 2)
    assert shared.predict(rng.normal(size=(4, 2, 3))).mean.shape == (4, 2)
    with pytest.raises(ValueError, match="3 features"):
        shared.predict(np.ones((2, 2)))
