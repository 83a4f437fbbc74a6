"""Logs of linear Thompson sampling, for many replications at once: the designs of the tests."""

import numpy as np

import bayesbandit as bb
from bayesbandit.ope import Log

K, T, BATCH = 3, 1000, 40
DESIGNS = {  # whether the linear model is right, and the floor of round t
    "well": (True, lambda t: 1 / 30),
    "mis": (False, lambda t: 1 / 30),
    "mis, decaying": (False, lambda t: t**-0.7 / 3),
    "well, decaying": (True, lambda t: t**-0.7 / 3),
}


def linear(R, seed, well=True, floor=lambda t: 1 / 30, T=T, noise=0.5):
    """Of R replications: contexts (R, T, 1), arms, rewards and probabilities. Three arms of value
    0; well: linear in x with slopes −.5, 0, .5; else quadratic."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(R, T, 1))
    shape = x if well else (x**2 - 1) / np.sqrt(2)
    mu = shape * np.array([-0.5, 0.0, 0.5])
    f = np.concatenate([np.ones_like(x), x], axis=2)
    return x, *thompson(rng, f, mu + noise * rng.normal(size=(R, T, K)), floor, noise)


def bernoulli(R, seed, p=0.3, T=T, floor=lambda t: 1 / 30):
    """Of R replications without contexts: three arms of value p each."""
    rng = np.random.default_rng(seed)
    x, y = np.empty((R, T, 0)), (rng.random((R, T, K)) < p).astype(float)
    return x, *thompson(rng, np.ones((R, T, 1)), y, floor, 0.5)


def thompson(rng, f, y, floor, noise):
    """Arms, rewards and probabilities of linear Thompson sampling on features f (R, T, D), with
    rewards y (R, T, K), refitted after each batch."""
    R, T, D = f.shape
    B = np.broadcast_to(np.eye(D), (R, K, D, D)).copy()
    b, e = np.zeros((R, K, D)), np.empty((R, T, K))
    arm, reward, rows = np.empty((R, T), int), np.empty((R, T)), np.arange(R)[:, None]
    for start in range(0, T, BATCH):
        at = slice(start, start + BATCH)
        now, inverse = f[:, at], np.linalg.inv(B)
        mean = np.einsum("rtd,rkde,rke->rtk", now, inverse, b)
        sd = noise * np.sqrt(np.einsum("rtd,rkde,rte->rtk", now, inverse, now))
        g = floor(start + 1)
        p = g + (1 - K * g) * bb.choice_probabilities(mean, sd)
        e[:, at] = p / p.sum(axis=2, keepdims=True)
        draw = rng.random((R, now.shape[1], 1))
        arm[:, at] = np.minimum((e[:, at].cumsum(axis=2) < draw).sum(axis=2), K - 1)
        reward[:, at] = np.take_along_axis(y[:, at], arm[:, at, None], 2)[..., 0]
        took = np.eye(K)[arm[:, at]]
        B += np.einsum("rtk,rtd,rte->rkde", took, now, now)
        b += np.einsum("rtk,rtd,rt->rkd", took, now, reward[:, at])
    assert rows.size == R
    return arm, reward, e


def logs(design):
    """Each replication's log, with the batches of the policy."""
    for x, arm, reward, e in zip(*design, strict=True):
        yield Log(x, arm, reward, e, batch=np.arange(len(arm)) // BATCH)
