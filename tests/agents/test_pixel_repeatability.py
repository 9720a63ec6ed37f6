"""What an agent on images depends on: its seed, and not how images are stored."""

import pytest
import torch
from pixel_agents import ACTION, WINNER, changed, make_agent, names, sequences, snapshot, transitions

from a2ls._errors import BadInput
from a2ls.agents import SAC, SACConfig


def updated(loss=WINNER, seed=0, count=3, stored=lambda batch: batch, **settings):
    agent = make_agent(loss, seed, **settings)
    metrics = [agent.update(transitions(i, stored=stored), sequences(loss, i, stored=stored)) for i in range(count)]
    assert all(figure().isfinite() for each in metrics for figure in each.values())
    return snapshot(agent)


@pytest.mark.parametrize(("augmentation", "views"), [("crop", 1), ("shift", 2), ("none", 1)])
def test_the_seed_determines_an_agent_to_the_last_bit(augmentation, views):
    settings = {"augmentation": augmentation, "augmented_views": views}
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = updated(**settings)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(6)
    assert changed(first, updated(**settings)) == set()
    assert changed(first, updated(seed=1, **settings)) >= {"encoder.head.linear.weight", "critic.first.weight"}


@pytest.mark.parametrize("augmentation", ["crop", "shift", "none"])
@pytest.mark.parametrize(
    "stored",
    [
        lambda batch: batch.contiguous(memory_format=torch.channels_last),
        lambda batch: batch.repeat_interleave(2, dim=3)[:, :, :, ::2],
        lambda batch: batch.permute(2, 0, 3, 1).contiguous().permute(1, 3, 0, 2),
        lambda batch: batch.float(),
    ],
    ids=["channels-last", "strided", "permuted", "float"],
)
def test_updates_do_not_depend_on_how_images_are_stored(stored, augmentation):
    plain, other = updated(augmentation=augmentation), updated(augmentation=augmentation, stored=stored)
    assert changed(plain, other) == set()


def test_translation_trains_too():
    agent = make_agent(frame=8, augmentation="translate")
    before = snapshot(agent)
    metrics = agent.update(transitions(frame=8), sequences(WINNER, frame=8))
    assert all(figure().isfinite() for figure in metrics.values())
    assert changed(before, snapshot(agent), "encoder.") == names(agent, "encoder.")


def test_an_agent_that_cannot_see_is_refused():
    with pytest.raises(BadInput, match="frame_size is 12, but crop needs one above image_size, which is 12"):
        make_agent(frame=12)
    with pytest.raises(BadInput, match="images of side 12 are too small for 5 convolutional layers"):
        make_agent(encoder_layers=5)
    with pytest.raises(BadInput, match="augmented_views is 2, but without augmentation all are the same"):
        make_agent(augmentation="none", augmented_views=2)
    with pytest.raises(BadInput, match="'scale', which is for vectors"):
        make_agent(augmentation="scale")
    with pytest.raises(ValueError, match="conv needs images"):
        SAC(7, ACTION, SACConfig(encoder="conv"))
