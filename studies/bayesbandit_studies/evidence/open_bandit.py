"""A real log: clicks of a fashion shop, under uniform choice and under Thompson sampling.

The Open Bandit data (Saito et al. 2021), a sample of one campaign: 34 items, three positions. Each
policy has a log of its own, so that its value estimated from the other's can be held against what
it earned. The folder is named by the environment variable BAYESBANDIT_OBD.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesbandit import evaluation
from bayesbandit.ope import Estimate, Log, estimate

FOLDER = "BAYESBANDIT_OBD"
FILES = {"uniform": "random-men.parquet", "Thompson": "bts-men.parquet"}
ESTIMATORS: dict[str, dict[str, Any]] = {
    "IPS": {"estimator": "ips", "weights": "equal"},
    "SNIPS": {"estimator": "snips", "weights": "equal"},
    "DR (default)": {},
}
EARNED = "its own log"
K = 34


def logs(folder: Path) -> dict[str, Log]:
    """Return each policy's log, in the order of its decisions; the context is the position.

    All probabilities of the uniform policy are known; of Thompson sampling, only those of the items
    that were shown.
    """
    found = {}
    for name, file in FILES.items():
        frame = pd.read_parquet(folder / file).sort_values("timestamp", kind="stable")
        x = pd.get_dummies(frame["position"]).to_numpy(np.float64)
        n = len(frame)
        known = {"propensity": frame["propensity_score"].to_numpy(np.float64)}
        if name == "uniform":
            known = {"probabilities": np.full((n, K), 1 / K)}
        found[name] = Log(
            x,
            frame["item_id"].to_numpy(),
            frame["click"].to_numpy(np.float64),
            arms=list(range(K)),
            **known,
        )
    return found


def shares(log: Log) -> np.ndarray:
    """Return the share (3, K) of each item at each position: the log's policy, on average."""
    counts = np.array([log.x[log.played == k].sum(axis=0) for k in range(K)]).T
    return counts / counts.sum(axis=1, keepdims=True)


def judged(folder: Path) -> pd.DataFrame:
    """Return for each policy its value by the other policy's log, a row for each estimator, and
    its mean reward in its own log.

    Thompson sampling's policy changed hour by hour. Here it is the share of each item at each
    position in its own log.
    """
    known = logs(folder)
    uniform, thompson = known["uniform"], known["Thompson"]
    targets = {
        "uniform": (thompson, uniform, np.full((len(thompson), K), 1 / K)),
        "Thompson": (uniform, thompson, uniform.x @ shares(thompson)),
    }
    rows = []
    for name, (log, own, pi) in targets.items():
        found: dict[str, Estimate] = {
            how: estimate(log, pi, **settings) for how, settings in ESTIMATORS.items()
        }
        for how, one in {**found, EARNED: estimate(own, None)}.items():
            rows.append(
                {"policy": name, "estimator": how, "value": one.value, "se": one.se,
                 "low": one.low, "high": one.high, "ess": one.ess, "refused": one.refused}
            )  # fmt: skip
    return pd.DataFrame(rows)


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return clicks per 1,000 rounds ± SE, and how far the estimates are from the mean reward."""
    rows = []
    for row in frame.to_dict("records"):
        policy, how, value, se = (row[c] for c in ("policy", "estimator", "value", "se"))
        earned = frame[(frame["policy"] == policy) & (frame["estimator"] == EARNED)]
        gap = value - earned["value"].item()
        ends = f"{1000 * row['low']:.1f} to {1000 * row['high']:.1f}"
        error = float(np.hypot(se, earned["se"].item()))
        rows.append({
            "policy": policy, "estimator": how,
            "clicks": evaluation.within(1000 * value, 1000 * se, 1),
            "95 % interval": row["refused"] or ends,
            "less what it earned":
                "" if how == EARNED else evaluation.within(1000 * gap, 1000 * error, 1, sign=True),
            "effective sample size": round(row["ess"]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def sample() -> pd.DataFrame | None:
    """Return `judged` for the folder that the environment variable names; None without one."""
    folder = os.environ.get(FOLDER)
    return None if not folder else judged(Path(folder))
