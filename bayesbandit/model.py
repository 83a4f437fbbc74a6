"""Declared reward models: a PyMC function of the data and of its priors, which are values.

@bb.reward_model(theta=bb.Prior("Normal", mu=0, sigma=1, dims="feature"), sigma=0.5)
def robust(x, reward, weight, theta, sigma):
    mu = x @ theta
    pm.Normal("reward", mu, sigma / pm.math.sqrt(weight), observed=reward)
    return mu
"""

from __future__ import annotations

import os
import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from bayesbandit.declaring import gallery
from bayesbandit.declaring.declaration import Declaration

if TYPE_CHECKING:
    import bambi
    import pandas as pd
    import pymc as pm
    import xarray as xr
    from numpy.typing import ArrayLike

    from bayesbandit.checks import Contexts
    from bayesbandit.declaring.from_pymc import Rows
    from bayesbandit.tables.encoder import Encoder


@dataclass(frozen=True, eq=False, repr=False)
class RewardModel(Declaration):
    """A reward model: a declaration and its priors.

    function: the declaration. It takes x (n, d), reward (n,) and its priors as PyMC variables. It
        takes weight (n,) if it weights its observations, and arm (n,) if the arms share the model.
        It returns the mean reward (n,).
    priors: by name, in the order of declaration: a `bb.Prior`, or a number or an array that fixes
        the variable.
    dims: the declared dimensions of each prior. A new prior without dimensions takes them, and a
        number or an array is broadcast over them.
    coords: the labels of more dimensions, which priors may have.
    encoder, arms: of a model `from_bambi`, the encoder of its contexts, and its arms in their order
        if it knows them; else None.
    made_by: makes again a model that was not declared, such as `from_pymc`.
    """

    encoder: Encoder | None = None
    arms: tuple[Any, ...] | None = None
    made_by: Callable[[], RewardModel] | None = None

    def explain(self, n_features: int, n_arms: int | None = None, bandit: bool = False) -> str:
        """Return the engine chosen for the model, and why each faster engine does not fit.

        n_arms: of a model that takes `arm` (None: 2); else None. bandit: also tell how a bandit
        learns it, or why it does not play it. The text has several lines.
        """
        from bayesbandit.inference.plan import explain  # loads PyMC

        return explain(self, n_features, n_arms, bandit)

    def prior_predictive(
        self,
        x: Contexts,
        arm: ArrayLike | None = None,
        n_arms: int | None = None,
        draws: int = 1000,
        seed: int | None = None,
    ) -> xr.DataTree:
        """Return draws of the prior, and of rewards at contexts x (n, d) given them.

        arm (n,): the arms of the rows, for a model over n_arms arms. The group `prior` has the
        variables and `mean_reward`, and `prior_predictive` the rewards. Raise ValueError for a
        model whose likelihood has potentials, from which nothing can be drawn.
        """
        from bayesbandit.inference.predictive import prior_predictive

        return prior_predictive(self, x, arm, n_arms, draws, seed)

    def check(
        self,
        x: Contexts,
        arm: ArrayLike | None = None,
        n_arms: int | None = None,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Return whether rewards have the mean that the model returns, at contexts x (n, d).

        Rewards are drawn given draws of the prior. The table has the mean difference to the mean
        reward, and that where it is large less that where it is small, with standard errors. A
        difference of more than 5 standard errors is warned about: a logit that is returned in the
        place of the probability is found.
        """
        from bayesbandit.inference.predictive import check

        return check(self, x, arm, n_arms, seed)

    @staticmethod
    def from_pymc(
        model: pm.Model | Callable[[], pm.Model],
        mean: str | None = None,
        reward: str | None = None,
        rows: Rows = (),
        arm_dim: str | None = None,
        *,
        encoder: Encoder | None = None,
        weighted: bool = False,
        name: str | None = None,
    ) -> RewardModel:
        """Return a PyMC model that exists as a reward model. It is not changed.

        model: the model, or a function that builds it. A function that can be imported makes the
            reward model loadable in another process.
        mean: the variable, mostly a deterministic one, that is the mean reward of each row. None:
            the mean of the rewards' distribution, where PyMC knows it.
        reward: the observed variable of the rewards; None if the model observes one alone.
        rows: what the model's data are of a context and an arm. The keys are names of data
            containers. The values are functions of `x` (n, d), `arm`, `weight` or `reward` (n,), as
            {"county": lambda x, arm: arm}; or a column of x, by its number or, with an encoder, by
            its name. A constant array in the model is given as a pair, [(array, 0)]. If the model
            observes a part of the rewards, the reward's name is a key, too.
        arm_dim: the dimension of the model that has an element for each arm.
        encoder: names the columns of x.
        weighted: whether observations have weights, to the power of which the likelihood is raised.
            It is then a potential, without posterior predictive draws.
        name: of the reward model; default: that of the function, or of the model.

        Raise ValueError for data with a value for each row that `rows` leaves out.
        """
        import pymc as pm

        from bayesbandit.declaring.from_pymc import Handover, declaration

        built = model if isinstance(model, pm.Model) else model()
        if not isinstance(built, pm.Model):
            raise TypeError(
                f"model must be a PyMC model, or a function that builds one; got {model!r}"
            )
        columns = None if encoder is None else encoder.features
        handover = Handover(built, mean, reward, rows, arm_dim, columns, weighted)
        default_name = model.name if isinstance(model, pm.Model) else getattr(model, "__name__", "")
        name = name or default_name or "from_pymc"
        if not name.isidentifier():
            raise ValueError(f"name= must be an identifier of Python; got {name!r}")
        made_by = partial(
            RewardModel.from_pymc, model, mean, reward, rows, arm_dim,
            encoder=encoder, weighted=weighted, name=name,
        )  # fmt: skip
        reward_model = RewardModel(declaration(handover, name), {}, made_by=made_by)
        gallery.register(reward_model)
        return reward_model

    @staticmethod
    def from_bambi(
        formula: str | bambi.Model,
        family: str = "gaussian",
        priors: Mapping[str, Any] | None = None,
        data: pd.DataFrame | None = None,
        *,
        arm: str = "arm",
        arms: Sequence[Any] | None = None,
        encoder: Encoder | None = None,
        weighted: bool = False,
        name: str = "from_bambi",
    ) -> RewardModel:
        """Return a bambi model as a reward model: "reward ~ age * income + (1|arm)".

        formula: a formula, to which family (bambi's name), priors (bambi's, by term) and data (the
            table that it is fitted to) belong; or a bambi model that has these.
        arm: the column of the data that holds the arm. Of a formula without it, each arm of a
            bandit has a model of its own.
        arms: the values of that column in the order of the bandit's arms; None: sorted, or in the
            order of its categories. The attribute `arms` has them.
        encoder: makes contexts of tables; the terms must be linear in its features within each arm.
            None: one with the formula's terms. The attribute `encoder` has it: give it to the
            bandit, and `model.encoder.transform(frame)` to `bb.fit`.
        weighted: as in `from_pymc`. name: of the reward model.

        A formula is code, as in bambi: do not take one from a stranger. The priors, which bambi
        scales by the data, are those of the model. `Intercept` is that of predictors less their
        means, as in bambi's PyMC model, unless bambi.Model(…, center_predictors=False) is given.
        Each term is tested on new rows, made by drawing each column of the data at random.
        ValueError is raised for a term that is not linear in the features, for hsgp terms, for a
        response that is computed, as log(y) or truncated(y, 0, 5), and for a family whose mean
        reward is not a parameter of its likelihood, such as hurdle ones.
        """
        from bayesbandit.declaring import from_bambi

        built, backend = from_bambi.built(formula, family, priors, data)
        arms = from_bambi.levels_of(built, arm, arms)
        encoder = encoder or from_bambi.encoder_of(built, arm)
        rows = from_bambi.affine_parts(built, encoder, arm, arms)
        mean = built.parameters[from_bambi.MEAN_PARAMETERS[built.family.name]]
        reward_model = RewardModel.from_pymc(
            backend.model, mean.alias or mean.name, None, rows, weighted=weighted, name=name
        )
        made_by = partial(
            RewardModel.from_bambi, formula, family, priors, data,
            arm=arm, arms=arms, encoder=encoder, weighted=weighted, name=name,
        )  # fmt: skip
        reward_model = replace(reward_model, encoder=encoder, arms=arms, made_by=made_by)
        gallery.register(reward_model)
        return reward_model

    @staticmethod
    def from_yaml(text: str) -> RewardModel:
        """Return the model that `to_yaml` wrote.

        Its declaration is found by name, in the running program or else in the gallery. Priors that
        the text omits are the declaration's. The text can neither run code nor name a file.
        """
        from bayesbandit.declaring.texts import from_data, parse

        name, priors = parse(text)
        model = gallery.running(name)
        if model is None and not name.isidentifier():  # a path would make the gallery run a file
            named = reprlib.repr(name)
            raise ValueError(f"the text names {named} as its model, which is not a bare name")
        model = model or gallery.load(name)
        model.check_names(priors)
        swapped = {name: from_data(prior, f"prior {name!r}") for name, prior in priors.items()}
        return cast(RewardModel, model.with_priors(**swapped))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.made_by is not None:
            return self.made_by, ()
        module = self.function.__module__ or ""
        state = (dict(self.priors), dict(self.dims or {}), dict(self.coords or {}))
        if module.startswith(gallery.FROM_FILE) or _is_importable(self.function):
            return _declared_in, (module, self.function.__qualname__, *state)
        return RewardModel, (self.function, *state)


def reward_model(
    *,
    coords: Mapping[str, Sequence[Any]] | None = None,
    **priors: object,
) -> Callable[[Callable[..., Any]], RewardModel]:
    """Turn a declaration into a `RewardModel` with these priors, given by name.

    coords: labels by dimension, as {"region": ["north", "south"]}, for priors with dims="region".
    """

    def declare(function: Callable[..., Any]) -> RewardModel:
        model = RewardModel(function, priors, coords=coords)
        if not (function.__module__ or "").startswith(gallery.FROM_FILE):
            gallery.register(model)
        return model

    return declare


def load_model(name: str | os.PathLike[str]) -> RewardModel:
    """Return a model by its name, or from a file: "FILE.py", "FILE.py:NAME" if it has several."""
    return cast(RewardModel, gallery.load(name))


def _declared_in(
    module: str,
    name: str,
    priors: dict[str, Any],
    dims: dict[str, tuple[str, ...]],
    coords: Mapping[str, Sequence[Any]],
) -> RewardModel:
    """Return a pickled model, whose declaration is in a module or in a file of the gallery."""
    if module.startswith(gallery.FROM_FILE):
        model = gallery.declared_in(module.removeprefix(gallery.FROM_FILE))[name]
    else:
        model = attrgetter(name)(import_module(module))
    return RewardModel(model.function, priors, dims, coords)


def _is_importable(function: Callable[..., Any]) -> bool:
    """Return whether the decorated function's name in its module is the model that was made of it.

    Pickle then stores the name, since it finds the model there and not the function.
    """
    if function.__module__ in ("", "__main__", None):
        return False
    try:
        model = attrgetter(function.__qualname__)(sys.modules[function.__module__])
    except (AttributeError, KeyError):
        return False
    return isinstance(model, RewardModel) and model.function is function
