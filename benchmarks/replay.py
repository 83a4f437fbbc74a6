"""Coverage of a replay's 95 % intervals, of one run and of ten together, against live runs.

    uv run benchmarks/replay.py [--replications 200] [--seed 11]

Logs of linear Thompson sampling, three arms, 2,000 rounds, with floors of .1 and .2; `LinTS` is
replayed. The truth is the mean reward of 3,000 live runs of as many rounds as matched.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.ope.designs import linear, logs

import bayesbandit as bb
from bayesbandit.ope.replay import overlap, replay, together

RUNS, LIVE, T = 10, 3_000, 2_000


def live(rng, well, rounds):
    """Mean expected reward of LinTS in so many rounds."""
    x = rng.normal(size=(rounds, 1))
    worth = (x if well else (x**2 - 1) / np.sqrt(2)) * np.array([-0.5, 0.0, 0.5])
    bandit = bb.LinTS(3, 1, seed=int(rng.integers(2**31)))
    chosen, _ = bandit.play(x, worth + 0.5 * rng.normal(size=worth.shape))
    return worth[np.arange(rounds), chosen].mean()


def main(replications, seed):
    for well in (True, False):
        for floor in (0.1, 0.2):
            one, ten, values, shared, matched = [], [], [], [], []
            design = linear(replications, seed, well, lambda t, floor=floor: floor, T)
            for i, log in enumerate(logs(design)):
                runs = [replay(log, bb.LinTS(3, 1, seed=100 * i + r), seed=r) for r in range(RUNS)]
                one.append((runs[0].low, runs[0].high))
                ten.append(together(runs)[2:])
                values.append(together(runs)[0])
                shared.append(overlap(runs))
                matched.append(runs[0].matched)
            rng = np.random.default_rng(seed)
            truth = np.mean([live(rng, well, matched[i % replications]) for i in range(LIVE)])
            rates = []
            for ends in (np.array(one), np.array(ten)):
                p = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean()
                rates.append(f"{100 * p:.1f} ± {100 * np.sqrt(p * (1 - p) / replications):.1f} %")
            print(
                f"well={well}, floor {floor}: live {truth:.4f}, replays {np.mean(values):.4f} ± "
                f"{np.std(values) / np.sqrt(replications):.4f}; coverage of one {rates[0]}, of "
                f"{RUNS} {rates[1]} (sharing {np.mean(shared):.2f} of rounds)",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=11)
    main(**vars(parser.parse_args()))
