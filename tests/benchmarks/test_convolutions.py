import pytest
import torch
from contestants import pixel_agent, pixel_replay, updates
from convolutions import (
    CHANNELS_LAST,
    CONTIGUOUS,
    LAYOUTS,
    Pass,
    Passes,
    PixelSizes,
    deviation,
    encoder_stack,
    pair_passes,
)
from matrix_products import UPDATES_PER_PAIR
from measuring import Contestant
from pixel_speed import count_gflop

from a2ls.space import find_loss, named_loss

SMALL = PixelSizes(hidden=16, batch=4, image_size=20, filters=5)
CONVOLUTIONS = encoder_stack(SMALL)
LOSSES = {
    "none": None,
    "a2-winner": named_loss("a2-winner"),
    "curl": named_loss("curl"),
    "no state in the target": named_loss("reward-prediction"),
    "several states in the source": find_loss("s0 s1 s3 a1 -> s2 r3"),
}


def pair_of_updates(loss, agent=None):
    return updates("ours", agent or pixel_agent(SMALL, loss), pixel_replay(SMALL, transitions=100), SMALL.batch)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_as_many_batches_as_derived_go_through_the_real_convolutions(loss):
    agent = pixel_agent(SMALL, loss)
    images = {"forward": 0, "both": 0}

    def count(body, inputs, output):
        images["both" if output.requires_grad else "forward"] += len(output)

    for body in {agent.encoder.body, agent.actor_body, agent.target_encoder.body}:
        body.register_forward_hook(count)
    pair_of_updates(loss, agent).run()
    assert pair_passes(loss) == Passes(**{kind: number / SMALL.batch for kind, number in images.items()})


def test_the_paper_s_winner_needs_nine_and_four_batches_in_two_updates():
    assert pair_passes(named_loss("a2-winner")) == Passes(forward=9, both=4)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_the_derived_operations_are_those_of_the_real_convolutions(loss):
    derived = pair_passes(loss).flops(SMALL) / UPDATES_PER_PAIR / 1e9
    counted = count_gflop(pair_of_updates(loss))
    assert derived == pytest.approx(counted.convolutions, rel=1e-9)
    assert counted.convolutions < counted.total


def test_a_pass_does_the_derived_operations():
    one = Pass(CONVOLUTIONS)
    assert count_gflop(Contestant("forward", one.forward)).total == pytest.approx(Passes(1, 0).flops(SMALL) / 1e9)
    assert count_gflop(Contestant("both", one.both)).total == pytest.approx(Passes(0, 1).flops(SMALL) / 1e9)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN")
@pytest.mark.parametrize("name", ["channels-last", "opaque", "native"])
def test_the_layouts_compute_the_same(name):
    before = torch.backends.mkldnn.enabled
    ours, theirs = Pass(CONVOLUTIONS, LAYOUTS[name]), Pass(CONVOLUTIONS, CONTIGUOUS)
    for pair in zip((ours.forward(), *ours.both()), (theirs.forward(), *theirs.both()), strict=True):
        assert deviation(*pair) < 1e-5
    assert torch.backends.mkldnn.enabled == before


def test_bfloat16_does_not_compute_quite_the_same():
    ours, theirs = Pass(CONVOLUTIONS, LAYOUTS["bfloat16"]).forward(), Pass(CONVOLUTIONS, CHANNELS_LAST).forward()
    assert 1e-4 < deviation(ours, theirs) < 0.1
