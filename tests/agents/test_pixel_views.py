"""What each network of an agent on images sees, and how often."""

import pytest
import torch
from pixel_agents import (
    ACTION,
    BATCH,
    CURL,
    LOSSES,
    SEQUENCES,
    WINNER,
    Watched,
    make_agent,
    names,
    places_of,
    sequences,
    transitions,
)

from a2ls.agents import SAC, SACConfig, Transitions
from a2ls.auxiliary import Sequences
from a2ls.space import Loss


@pytest.mark.parametrize(("augmentation", "views"), [("crop", 1), ("none", 1), ("shift", 2)])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_each_network_sees_as_many_images_as_the_masks_say(loss, augmentation, views):
    agent = make_agent(loss, augmentation=augmentation, augmented_views=views)
    watched = Watched(agent)
    source, target = (0, 0) if loss is None else (sum(loss.source[::3]), sum(loss.target[::3]))
    for i in range(4):
        watched.forget()
        agent.update(transitions(i), sequences(loss, i))
        # Critic: the next observations for the actor, and the observations. Actor: one pass for itself and the critic.
        critic, actor = [views * BATCH] * 2, [BATCH] if i % 2 == 0 else []
        assert watched.counts("online") == [*critic, *actor, *([source * SEQUENCES] if source else [])]
        assert watched.counts("target") == [views * BATCH, *([target * SEQUENCES] if target else [])]


@pytest.mark.parametrize("loss", [WINNER, CURL], ids=str)
def test_layers_of_the_actor_s_own_see_what_it_acts_on_alone(loss):
    agent = make_agent(loss, actor_encoder="own")
    watched = Watched(agent)
    for i, actor in enumerate([[BATCH], []]):
        watched.forget()
        agent.update(transitions(i), sequences(loss, i))
        assert watched.counts("actor") == [BATCH, *actor]
        assert watched.counts("online") == [BATCH, *actor, SEQUENCES]


@pytest.mark.parametrize("augmentation", ["crop", "none"])
@pytest.mark.parametrize("loss", [WINNER, CURL, LOSSES[-1]], ids=str)
def test_no_network_sees_an_image_twice_with_the_same_weights(loss, augmentation):
    agent = make_agent(loss, augmentation=augmentation)
    watched = Watched(agent)
    for i in range(3):
        agent.update(transitions(i), sequences(loss, i))
    prefix = {"online": "encoder.", "target": "target_encoder."}
    seen = [
        (name, b"".join(weights[p].numpy().tobytes() for p in names(agent, prefix[name])), image.numpy().tobytes())
        for name, inputs, weights, _ in watched.calls
        for image in inputs
    ]
    assert len(seen) > 3 * 4 * BATCH
    assert len(set(seen)) == len(seen)


def test_observations_are_cut_independently_of_the_next_ones_and_alike_for_all_networks():
    agent = make_agent(None)
    watched = Watched(agent)
    equal = 0
    for i in range(12):
        batch = transitions(i)
        watched.forget()
        agent.update(batch)
        following, observed, *for_the_actor = watched.seen("online")
        (for_the_target,) = watched.seen("target")
        assert torch.equal(following, for_the_target)
        assert all(torch.equal(observed, again) for again in for_the_actor)
        pairs = zip(places_of(observed, batch.observations), places_of(following, batch.next_observations), strict=True)
        equal += sum(a == b for a, b in pairs)
    assert equal < 16  # of 48, where 48 / 9 are expected


def test_the_auxiliary_target_sees_windows_of_its_own():
    agent = make_agent(CURL)
    watched = Watched(agent)
    pairs = []
    for i in range(16):
        given = sequences(CURL, i)
        agent.update(transitions(i), given)
        source, target = (places_of(watched.seen(name)[-1], given.states[0]) for name in ("online", "target"))
        pairs += zip(source, target, strict=True)
    assert sum(a == b for a, b in pairs) < 16  # of 48, where 48 / 9 are expected
    assert {len({pair[side] for pair in pairs}) for side in (0, 1)} == {9}


def test_without_augmentation_source_and_target_see_the_same():
    agent = make_agent(CURL, augmentation="none")
    watched = Watched(agent)
    given = sequences(CURL)
    agent.update(transitions(), given)
    for name in ("online", "target"):
        assert torch.equal(watched.seen(name)[-1], given.states[0])


def test_states_of_a_sequence_are_cut_independently():
    loss, equal = Loss.parse("s0 a0 s2 -> s1 s3"), 0
    agent = make_agent(loss)
    watched = Watched(agent)
    for i in range(8):
        given = sequences(loss, i)
        agent.update(transitions(i), given)
        for name, steps in (("online", (0, 2)), ("target", (1, 3))):
            blocks = watched.seen(name)[-1].chunk(2)
            places = [places_of(block, given.states[step]) for block, step in zip(blocks, steps, strict=True)]
            equal += sum(a == b for a, b in zip(*places, strict=True))
    assert equal < 16  # of 48, where 48 / 9 are expected


def test_scaled_vectors_share_a_factor_within_a_view_and_not_across_views():
    loss, size = Loss.parse("s0 a0 s1 -> s2 s3"), 5
    agent = SAC(size, ACTION, SACConfig(hidden=8, augmentation="scale", actor_encoder="shared"), loss)
    watched = Watched(agent)
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(4, SEQUENCES, size, generator=generator)
    observations, following = torch.randn(2, BATCH, size, generator=generator)
    batch = Transitions(observations, torch.zeros(BATCH, ACTION), torch.zeros(BATCH), following, torch.ones(BATCH))
    agent.update(batch, Sequences(states, torch.zeros(4, SEQUENCES, ACTION), torch.zeros(4, SEQUENCES)))

    def factors(seen, original):
        ratio = (seen / original).flatten(1)
        torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))
        return ratio[:, 0]

    online, target = watched.seen("online"), watched.seen("target")
    transition = factors(online[0], following)
    for seen, original in ((online[1], observations), (online[2], observations), (target[0], following)):
        torch.testing.assert_close(factors(seen, original), transition)
    sources = factors(online[3], states[:2].flatten(0, 1)).chunk(2)
    targets = factors(target[1], states[2:].flatten(0, 1)).chunk(2)
    torch.testing.assert_close(*sources)
    torch.testing.assert_close(*targets)
    assert (sources[0] - targets[0]).abs().min() > 1e-4
    assert len({round(factor, 4) for factor in [*transition.tolist(), *sources[0].tolist()]}) == BATCH + SEQUENCES
