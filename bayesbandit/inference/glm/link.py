"""The link and the likelihood of a declaration: rewards of a likelihood p(r | η) by name, and a
linear predictor η = A(x, arm) θ + b.

θ enters the mean reward by one node that is affine in it, and the likelihood through the same node.
The graphs are cut there. What is left must depend on the node, the reward and the weight alone, of
each row by itself (`rows`), and be analytic in the node and the weight (`Analytic`). Two analytic
functions that agree at random points agree everywhere, so numbers settle the rest: g(mean) is η for
g the logit, probit or log, and the log likelihood of each reward is the family's, but for a
constant. Each reward is tested when it is first seen.

The *working model* is the same with rows N(η, 1/weight) in the place of the likelihood, and η for
its mean reward: what is known of linear-Gaussian models holds for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from bayesbandit.checks import Array
from bayesbandit.inference.base import Compiled, NotThisEngine, refuse
from bayesbandit.inference.draws import Rows
from bayesbandit.inference.glm.families import Family
from bayesbandit.inference.graph_analysis.degrees import Analytic, Degrees, depends_on
from bayesbandit.inference.graph_analysis.density import Density, Term
from bayesbandit.inference.graph_analysis.operations import elementwise_name, number, operands
from bayesbandit.inference.graph_analysis.quadratic import total
from bayesbandit.inference.graph_analysis.rewrites import merged, simplified
from bayesbandit.inference.graph_analysis.rows import DATA_ROW, RowWalk
from bayesbandit.kernels.glm.families import BINOMIAL, NEGATIVE_BINOMIAL, POISSON, PROBIT

MULTIPLICATIVE = {"Neg", "Mul", "TrueDiv", "Identity"}
ADDITIVE = {"Add", "Sub"}
LIKELIHOOD_POINTS = 8  # at which a likelihood is compared with the family's,
MAX_ABS_ETA = 5.0  # and how far η goes
LIKELIHOOD_TOLERANCE = 1e-7  # of a log likelihood, relative: PyTensor has √2 in single precision
ROW_TOLERANCE = 1e-5  # of one at a posterior's own η, absolute, a row
END_TOLERANCE = 0.01  # of one where 1 − p is next to nothing, relative
LINK_POINTS = 241  # points at which a mean reward is compared with the family's
REWARDS_AT_ONCE = 16  # rewards that are compared in one sum
LARGE_ETA = 30.0  # where a chance is 1
FAR_ETA = (60.0, 61.0)  # where a chance of 0 falls as far as it will
LARGEST_ALPHA = 1e9  # of a negative binomial reward; beyond, it is a Poisson one


class Link:
    """A likelihood of a family that is known by name, of one linear predictor, as a model has it.

    density: the model's, simplified. eta: the graph of the linear predictor: slope core + shift, of
    the node at which the graphs are cut. weighted: whether a row's log likelihood is multiplied by
    its weight. engine: in whose name rows are refused that are not the family's.
    """

    def __init__(self, density: Density, engine: str) -> None:
        self.engine = engine
        try:
            self._read(with_shared_nodes(density, simpler=False))
        except NotThisEngine as error:
            try:
                self._read(with_shared_nodes(density, simpler=True))
            except NotThisEngine:
                raise error from None

    def _read(self, density: Density) -> None:
        """Find the linear predictor and the family in a density."""
        self.density = density
        engine = self.engine
        node, core = predictor(self.density, engine)
        value: Variable = pt.tensor("eta", shape=(None,))
        on_data = [term for term in self.density.terms if term.on_data]
        # mean and likelihood must be functions of the same node, and of nothing else of θ
        graphs = [node, self.density.mean, *(term.graph for term in on_data)]
        at, mean, *likely = clone_replace(graphs, {core: value}, rebuild_strict=False)
        self._check_graph("'mean_reward'", mean, value, data=set())
        for term, graph in zip(on_data, likely, strict=True):
            self._check_graph(term.label, graph, value, data={"reward", "weight"})
        # log p(r | η) times w: a power of the likelihood, as `weight * logp` declares
        self.weighted = "weight" in depends_on(likely, self.density.inputs)
        # the node is affine in its core: values at 0 and 1 tell η = (high − low) core + low
        low, high = Compiled([value], [at])(np.array([0.0, 1.0]))[0].tolist()
        self._mean = Compiled([value], [mean])
        self._likelihood = Compiled([value, *self.density.inputs.values()], [total(likely)])
        self.family, sign, added = self._recognised(high - low, low)
        # the family's η is sign · node + added
        self.slope = sign * (high - low)
        self.shift = sign * low + added
        if self.family.kind == POISSON:
            self.family = self._count()
        self.eta = node if (sign, added) == (1.0, 0.0) else pt.add(pt.mul(node, sign), added)
        self._tested: set[float] = set()
        self._check_rewards(self.family.rewards)

    def _means(self, eta: Array, slope: float, shift: float) -> Array:
        """Return the mean rewards at η (n,), slope core + shift."""
        [mean] = self._mean((eta - shift) / slope)
        return np.broadcast_to(mean, eta.shape)

    def _log_p(self, eta: Array, reward: Array, weight: Array) -> float:
        """Return the log likelihood of rows (n,) together."""
        n = len(reward)
        x = np.ones((n, self.density.n_features))
        arm = np.zeros(n, dtype=np.int64)
        rows = {"x": x, "reward": reward, "weight": weight, "arm": arm}
        arguments = self.density.arguments(rows)
        [value] = self._likelihood((eta - self.shift) / self.slope, *arguments)
        return float(value)

    def _recognised(self, slope: float, shift: float) -> tuple[Family, float, float]:
        """Return the family that has such mean rewards, and its η by the node, slope core + shift:
        a sign times the node, and what is added to it."""
        # a model may say 1 − p, or Φ(−η): its node is then −η
        for sign in (1.0, -1.0):
            mirrored = sign * slope, sign * shift
            # the mean at η = 0 tells the shift, and where it ends up tells how many trials there
            # are
            level, most = self._means(np.array([0.0, LARGE_ETA]), *mirrored).tolist()
            # at η = 30 a chance is 1, and the mean reward the number of trials
            trials = float(np.round(np.clip(most, 1.0, None)))
            for family in (Family(PROBIT), Family(BINOMIAL, trials), Family(POISSON)):
                # g(mean at 0) is what η has been moved by, if it is more than rounding
                added = float(family.linked(np.array(level)))
                added = 0.0 if abs(added) < 1e-12 else added
                eta = np.linspace(*family.ends, LINK_POINTS)
                with np.errstate(all="ignore"):
                    means = self._means(eta, mirrored[0], mirrored[1] + added)
                    if np.allclose(means, family.mean(eta), 1e-5, 1e-9):
                        return family, sign, added
        raise refuse(self.engine, "'mean_reward': no link that is known: logit, probit or log")

    def _count(self) -> Family:
        """Return the family of counts of mean e^η that has such a likelihood of 0.

        log p(0 | η) is −α log(1 + e^η/α), whose slope ends at −α, or −e^η of a Poisson one.
        """
        nearer, farther = (self._log_p(np.array([k]), np.zeros(1), np.ones(1)) for k in FAR_ETA)
        alpha = float(f"{nearer - farther:.13g}")  # as it was declared
        # a Poisson reward's log p(0) = −e^η has a slope of −1e26 there
        return Family(NEGATIVE_BINOMIAL, alpha) if 0 < alpha < LARGEST_ALPHA else Family(POISSON)

    def _check_graph(self, label: str, graph: Variable, value: Variable, data: set[str]) -> None:
        """Check that a graph depends on the node's value and such data alone, of each row by
        itself, and is analytic in the value and the weight."""
        inputs = self.density.inputs
        named = {f"'{k}'": v for k, v in self.density.values.items()} | inputs
        if more := depends_on([graph], named) - data:
            what = " and ".join(sorted(more))
            raise refuse(self.engine, f"{label}: depends on {what} besides the linear predictor")
        rows = RowWalk([graph], dict.fromkeys([*inputs.values(), value], DATA_ROW))
        if why := rows.mixed(graph) if data else rows.apart(graph):
            raise refuse(self.engine, f"{label}: rows are not apart: {why}")
        weight = {v for role, v in inputs.items() if role == "weight"}
        # analytic in η and w; each reward is tested by itself, for counts are no continuum
        analytic = Analytic([graph], dict.fromkeys([value, *weight], 1.0), weight)
        if why := analytic.fault(graph, most=1):
            raise refuse(self.engine, f"{label}: {why}")

    def weights(self, data: Rows) -> Array:
        """Return the powers (n,) of rows' likelihoods."""
        return data["weight"] if self.weighted else np.ones(len(data["x"]))

    def check(self, data: Rows, eta: Array | None = None) -> None:
        """Run the identity test: the model's log likelihood is the family's, but for a constant,
        for each of these rewards, near and far; and of these rows together at their η (n,)."""
        new = np.array(sorted(set(data["reward"].tolist()) - self._tested))
        if not (possible := self.family.possible(new)).all():
            reward = float(new[~possible][0])
            reason = f"a reward of {reward:g} is none of a {self.family.name} likelihood"
            raise refuse(self.engine, reason, of_rows=True)
        for i in range(0, len(new), REWARDS_AT_ONCE):
            self._check_rewards(new[i : i + REWARDS_AT_ONCE])
        if eta is not None and len(eta):
            self._compare(
                eta,
                data["reward"],
                self.weights(data),
                LIKELIHOOD_TOLERANCE,
                ROW_TOLERANCE * len(eta),
            )

    def _check_rewards(self, reward: Array) -> None:
        """Test rewards (n,): by what is proved of the graph, it holds for all rows that have
        them."""
        n = len(reward)
        rng = np.random.default_rng(0)
        for _ in range(LIKELIHOOD_POINTS):
            weight = rng.uniform(0.3, 2.5, n) if self.weighted else np.ones(n)
            self._compare(
                rng.uniform(-MAX_ABS_ETA, MAX_ABS_ETA, n), reward, weight, LIKELIHOOD_TOLERANCE
            )
        for end in self.family.ends:
            self._compare(np.full(n, end), reward, np.ones(n), END_TOLERANCE)
        self._tested.update(reward.tolist())

    def _compare(
        self,
        eta: Array,
        reward: Array,
        weight: Array,
        relative: float,
        absolute: float = 0.0,
    ) -> None:
        """Refuse rows whose log likelihoods do not differ between η and 0 as the family's do."""
        # log p(r | η) − log p(r | 0): constants in r alone cancel
        at = (eta, np.zeros(len(eta)))
        ours = [self.family.total(value, reward, weight) for value in at]
        model = [self._log_p(value, reward, weight) for value in at]
        gap = abs((model[0] - ours[0]) - (model[1] - ours[1]))
        if not gap <= relative * (np.abs([*ours, *model]).sum() + len(eta)) + absolute:
            name = self.family.name
            reason = f"the likelihood is not {name}, as its mean suggests: by {gap:.2g}"
            raise refuse(self.engine, f"on these rows {reason}", of_rows=True)


def with_shared_nodes(density: Density, simpler: bool) -> Density:
    """Return the same, with what the mean reward and the likelihood have in common as one node;
    both simplified, if that is asked for. PyMC simplifies the log density but not the mean."""
    on_data = [term for term in density.terms if term.on_data]
    shared = merged([*(term.graph for term in on_data), density.mean])
    *graphs, mean = merged(simplified(*shared)) if simpler else shared
    next_graph = iter(graphs)
    terms = tuple(replace(t, graph=next(next_graph)) if t.on_data else t for t in density.terms)
    return replace(density, terms=terms, mean=mean)


def predictor(density: Density, engine: str) -> tuple[Variable, Variable]:
    """Return the node, affine in θ, that the mean reward is a function of, and the node's core: it
    is ± the core and numbers.

    Refuse the engine if the mean reward has no link, if there are several cores, or if the core is
    not one number for each row.
    """
    seeds = dict.fromkeys(density.values.values(), 1.0)
    degrees = Degrees([density.mean], seeds)
    if degrees.of(density.mean) <= 1:
        raise refuse(engine, "the mean reward is linear, without a link")
    affine: dict[Variable, Variable] = {}  # the node of each core
    behind = [density.mean]
    while behind:
        v = behind.pop()
        # walk down from the mean to the first nodes that are affine in θ
        if 0 < degrees.of(v) <= 1:
            node = below(v, MULTIPLICATIVE)
            affine[below(node, MULTIPLICATIVE | ADDITIVE)] = node
        elif degrees.of(v) > 1:
            behind.extend(operands(v))
    if len(affine) != 1:
        raise refuse(engine, "'mean_reward': no function of one linear predictor")
    [(core, node)] = affine.items()
    if core.type.ndim != 1 or core.type.broadcastable[0] or core in seeds:
        raise refuse(engine, "'mean_reward': its linear predictor is not one number a row")
    return node, core


def below(node: Variable, operations: set[str]) -> Variable:
    """Return what an affine node is computed from by such operations with numbers."""
    while elementwise_name(node) in operations:
        variables = [v for v in operands(node) if not is_number(v)]
        if len(variables) != 1 or variables[0].type.ndim != 1:
            break
        [node] = variables
    return node


def is_number(variable: Variable) -> bool:
    """Return whether a variable is one number, written or computed of numbers, as √2 is."""
    if number(variable) is not None:
        return True
    leaves = (v for v in ancestors([variable]) if v.owner is None)
    return all(variable.type.broadcastable) and all(isinstance(v, Constant) for v in leaves)


def working(link: Link) -> Density:
    """Return the density of the working model: rows N(η, 1/weight)."""
    density = link.density
    inputs = dict(density.inputs)
    data = dict(density.own)
    if "weight" not in inputs:
        inputs["weight"] = pt.tensor("weight", shape=(None,))
        data["weight"] = np.ones(len(data["x"]))
    # −½ w (r − η)²: a normal reward of precision w, but for constants
    m = pt.tensor("m", shape=(None,))
    reward, weight = map(pt.as_tensor_variable, (inputs["reward"], inputs["weight"]))

    def normal(eta: Variable) -> Variable:
        return -0.5 * weight * (reward - eta) ** 2

    prior = tuple(term for term in density.terms if not term.on_data)
    row = Term("working", "the likelihood", normal(link.eta), normal(m), on_data=True)
    return replace(
        density, terms=(*prior, row), mean=link.eta, mean_input=m, inputs=inputs, own=data
    )
