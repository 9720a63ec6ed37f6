from dataclasses import replace

import pytest
import torch
from measuring import Contestant
from pixel_speed import count_gflop
from rainbow_contestants import (
    AUXILIARY,
    BACKWARD,
    MOVING,
    OPTIMISER,
    SAMPLING,
    SETTING,
    TARGETS,
    VALUES,
    Learner,
    Play,
    filled_replay,
)
from rainbow_work import RainbowSizes, update_work

from a2ls.space import find_loss, named_loss
from a2ls.training import preset, with_baseline

IMAGES = RainbowSizes(hidden=16, batch=4, observation=(4, 35, 35), actions=3, atoms=11)
VECTORS = RainbowSizes(hidden=64, batch=32, observation=(4,), actions=2, atoms=51)
LOSSES = {
    "none": None,
    "a2-winner": named_loss("a2-winner"),
    "curl": named_loss("curl"),
    "no state in the target": named_loss("reward-prediction"),
    "several states in the source": find_loss("s0 s1 s3 a1 -> s2 r3 | cosine +neg"),
}


def settings(sizes, name="none"):
    config = preset("atari-100k", "pong") if sizes.images else preset("fast-discrete", "CartPole-v1")
    return with_baseline(config, "curl") if name == "curl" else config


def learner(sizes, name="none", **options):
    config = replace(settings(sizes, name), buffer_size=1_000)
    replay = filled_replay(config, sizes, Play.draw(sizes, transitions=400))
    return Learner(config, sizes, replay, LOSSES[name], **options)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("sizes", [IMAGES, VECTORS], ids=["images", "vectors"])
def test_what_is_derived_are_just_the_convolutions_and_products_of_the_real_update(sizes, name):
    derived = update_work(sizes, LOSSES[name])
    counted = count_gflop(Contestant("real", learner(sizes, name).update))
    assert derived.convolution_flops / 1e9 == pytest.approx(counted.convolutions, rel=1e-9)
    # The real update also projects distributions, and computes a few gradients that nothing needs.
    assert 0.93 * counted.total < derived.flops / 1e9 <= counted.total


@pytest.mark.parametrize("sizes", [IMAGES, VECTORS], ids=["images", "vectors"])
def test_what_is_prepared_does_what_was_derived(sizes):
    work = update_work(sizes, LOSSES["a2-winner"])
    assert count_gflop(Contestant("bound", work.prepare())).total == pytest.approx(work.flops / 1e9, rel=1e-9)


@pytest.mark.parametrize("name", ["none", "a2-winner", "curl"])
def test_an_update_in_parts_is_the_same_update(name):
    whole, parts = learner(IMAGES, name), learner(IMAGES, name)
    for _ in range(4):
        whole.update()
        parts.update_in_parts()
    for (key, ours), theirs in zip(whole.agent.named_parameters(), parts.agent.parameters(), strict=True):
        assert torch.equal(ours, theirs), key
    assert whole.updates == parts.updates == 4
    expected = {SAMPLING, TARGETS, VALUES, BACKWARD, OPTIMISER, MOVING, SETTING}
    assert set(parts.laps.timings()) == (expected if name == "none" else {*expected, AUXILIARY})


def test_it_is_said_why_an_update_is_not_recorded():
    assert learner(VECTORS, "a2-winner", recorded=True).obstacle() is None
    assert learner(VECTORS, "a2-winner").obstacle() is None
    assert learner(IMAGES, "a2-winner", recorded=True).obstacle()
