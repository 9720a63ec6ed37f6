"""What each network of an agent on images sees, how often, and what an agent acts on."""

import pytest
import torch

from a2ls._errors import BadInput
from a2ls.agents import SAC, SACConfig
from a2ls.space import Loss
from helpers.agents import (
    ACTION,
    ACTIONS,
    BATCH,
    CURL,
    SEQUENCES,
    WINNER,
    Watched,
    images,
    learn,
    make_agent,
    pixel_agent,
    snapshot,
    vectors,
)

LOSSES = [None, WINNER, CURL, Loss.parse("s0 s1 s2 -> a0 r1"), Loss.parse("s0 a0 s2 -> s1 r1 s3 s4")]


@pytest.mark.parametrize(
    ("augmentation", "views", "actor_encoder"), [("crop", 1, "shared"), ("none", 1, "own"), ("shift", 2, "shared")]
)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_each_network_sees_the_images_of_the_table_in_the_documents(loss, augmentation, views, actor_encoder):
    agent = pixel_agent(loss, augmentation=augmentation, augmented_views=views, actor_encoder=actor_encoder)
    source, target = (0, 0) if loss is None else (sum(loss.source[::3]), sum(loss.target[::3]))
    for i in range(2):
        watched = Watched(agent)
        learn(agent, i, i + 1, loss, images)
        # Number of images, and whether they are seen with a graph.
        following, observed = (views * BATCH, False), (views * BATCH, True)
        again = [(BATCH, False)] if i == 0 else []
        of_source, of_target = [(source * SEQUENCES, True)] * (source > 0), [(target * SEQUENCES, False)] * (target > 0)
        calls = {name: [call[1:] for call in watched.calls if call[0] == name] for name in "OTA"}
        assert calls["T"] == [following, *of_target]
        shared = actor_encoder == "shared"
        assert calls["O"] == [*[following] * shared, observed, *again, *of_source]
        assert calls["A"] == ([] if shared else [following, *again])
        watched.remove()


@pytest.mark.parametrize("augmentation", ["crop", "shift", "none"])
def test_learning_and_acting_do_not_depend_on_how_images_are_stored(augmentation):
    results = []
    for stored in (
        lambda batch: batch,
        lambda batch: batch.contiguous(memory_format=torch.channels_last),
        lambda batch: batch.repeat_interleave(2, dim=3)[:, :, :, ::2],
        lambda batch: batch.float(),
    ):
        agent = pixel_agent(augmentation=augmentation)
        learn(agent, 0, 2, WINNER, lambda *which, stored=stored: stored(images(*which)))
        results.append([*agent.parameters(), agent.act(stored(images(3, 0)), deterministic=True)])
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], result, strict=True))


@pytest.mark.parametrize("make", [make_agent, pixel_agent])
def test_acting_learns_nothing_and_draws_noise_only_if_asked(make):
    agent, obs = make(), (images if make is pixel_agent else vectors)()
    before, state = snapshot(agent), agent.generator.get_state()
    first = agent.act(obs, deterministic=True)
    assert torch.equal(first, agent.act(obs, deterministic=True))
    assert torch.equal(state, agent.generator.get_state())
    drawn = [agent.act(obs, deterministic=False) for _ in range(2)]
    assert not torch.equal(*drawn)
    assert first.shape == drawn[0].shape == (3, ACTION)
    assert not any(actions.requires_grad or actions.abs().max() > 1 for actions in (first, *drawn))
    assert all(torch.equal(before[name], value) for name, value in snapshot(agent).items())


def test_an_agent_that_cannot_see_is_refused():
    with pytest.raises(BadInput, match="frame_size is 12, but crop needs one above image_size, which is 12"):
        pixel_agent(frame=12)
    with pytest.raises(BadInput, match="images of side 12 are too small for 5 convolutional layers"):
        pixel_agent(encoder_layers=5)
    with pytest.raises(BadInput, match="conv needs images"):
        SAC((7,), ACTIONS, SACConfig(encoder="conv"))
