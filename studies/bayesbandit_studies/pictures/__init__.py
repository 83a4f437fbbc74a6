"""Pictures of the studies and the notebooks; each function returns a matplotlib `Figure`."""

from bayesbandit_studies.pictures.interval_rows import interval_rows, regret_rows
from bayesbandit_studies.pictures.learning import learning_curves
from bayesbandit_studies.pictures.maps import assignment, bias, outcomes
from bayesbandit_studies.pictures.optimal_share import optimal_share
from bayesbandit_studies.pictures.pairs import pairwise_scatter
from bayesbandit_studies.pictures.posteriors import coefficients, densities, shrinkage
from bayesbandit_studies.pictures.propensities import propensities

__all__ = [
    "assignment",
    "bias",
    "coefficients",
    "densities",
    "interval_rows",
    "learning_curves",
    "optimal_share",
    "outcomes",
    "pairwise_scatter",
    "propensities",
    "regret_rows",
    "shrinkage",
]
