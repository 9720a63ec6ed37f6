"""The result that everything rests on: a good auxiliary loss makes the agent learn faster, and a bad one does not."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from statistics import fmean

import pytest

from a2ls.space import named_loss
from a2ls.training import prepare_process, preset, train

SEEDS = (0, 1, 2)


def aulc(name, seed):
    prepare_process()
    return train(preset("fast", "cheetah-run"), named_loss(name) if name else None, seed).aulc


@pytest.mark.slow
def test_a2_winner_helps_on_cheetah_run_and_action_inference_does_not():
    names = (None, "a2-winner", "action-inference")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {name: [pool.submit(aulc, name, seed) for seed in SEEDS] for name in names}
        mean = {name: fmean(future.result() for future in of_seeds) for name, of_seeds in futures.items()}
    assert mean["a2-winner"] > 1.6 * mean[None]
    assert mean["action-inference"] < 1.3 * mean[None]
