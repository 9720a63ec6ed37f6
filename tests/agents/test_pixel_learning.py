"""What trains which network of an agent on images, and how it goes on after being saved."""

import copy
import io
import pickle

import pytest
import torch
from pixel_agents import (
    CURL,
    WINNER,
    Watched,
    changed,
    gradients_of,
    images,
    make_agent,
    names,
    sequences,
    snapshot,
    transitions,
)


def test_critic_and_auxiliary_loss_train_every_convolution():
    critic, both = make_agent(), make_agent()
    start = snapshot(critic)
    for agent, given in ((critic, None), (both, sequences(WINNER))):
        agent.updates = 1
        agent.update(transitions(), given)
    convolutions = names(critic, "encoder.body.")
    assert len(convolutions) == 4
    assert changed(start, snapshot(critic), "encoder.body.") == convolutions
    assert changed(snapshot(critic), snapshot(both), "encoder.body.") == convolutions
    assert changed(snapshot(critic), snapshot(both)) == names(both, "encoder.") | names(both, "auxiliary.")


def test_the_actor_s_step_leaves_the_convolutions_alone():
    with_actor, without = make_agent(None), make_agent(None)
    start = snapshot(with_actor)
    without.updates = 1
    gradients = gradients_of(with_actor)
    for agent in (with_actor, without):
        agent.update(transitions())
    assert changed(snapshot(without), snapshot(with_actor), "encoder.") == set()
    assert changed(start, snapshot(with_actor), "actor_encoder.head.") == names(agent, "actor_encoder.head.")
    assert changed(start, snapshot(without), "actor_encoder.head.") == set()
    assert {len(gradients[name]) for name in names(agent, "encoder.") | names(agent, "critic.")} == {1}


def test_bodies_have_a_graph_only_where_the_encoder_learns():
    agent = make_agent()
    watched = Watched(agent)
    target_grad_modes = []
    agent.target_encoder.register_forward_pre_hook(lambda *_: target_grad_modes.append(torch.is_grad_enabled()))
    agent.update(transitions(), sequences(WINNER))
    assert watched.trained("online") == [False, True, False, True]
    assert watched.trained("target") == [False, False]
    assert target_grad_modes == [False, False]
    assert not any(p.requires_grad for p in agent.target_encoder.parameters())
    assert all(p.grad is None for p in agent.parameters())


def test_the_target_encoder_follows_by_its_tau():
    agent = make_agent(None, encoder_tau=0.3)
    before = snapshot(agent)
    agent.update(transitions())
    after = snapshot(agent)
    for name in names(agent, "target_encoder."):
        online = after[name.removeprefix("target_")]
        assert not torch.equal(online, before[name])
        torch.testing.assert_close(after[name], 0.7 * before[name] + 0.3 * online)
    agent.update(transitions(1))
    assert changed(after, snapshot(agent), "target_") == set()


def test_each_weight_moves_by_its_own_gradient():
    # Weights are stored in channels-last order, and Adam goes through memory.
    agent = make_agent(None)
    agent.updates = 1
    before, gradients = snapshot(agent), gradients_of(agent)
    agent.update(transitions())
    for name in names(agent, "encoder."):
        (gradient,) = gradients[name]
        step = agent.config.learning_rate * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(snapshot(agent)[name], before[name] - step)


def shares_convolutions(agent):
    body = agent.encoder.body
    pairs = zip(agent.actor_encoder.body.parameters(), body.parameters(), strict=True)
    trained = {id(p) for p in agent.critic_optimizer.parameters}
    return all(a is b for a, b in pairs) and {id(p) for p in body.parameters()} <= trained


def test_the_actor_has_the_critic_s_convolutions_and_a_head_of_its_own():
    agent = make_agent()
    assert shares_convolutions(agent)
    heads = agent.encoder.head, agent.actor_encoder.head
    assert not {id(p) for p in heads[0].parameters()} & {id(p) for p in heads[1].parameters()}
    assert not torch.equal(heads[0].linear.weight, heads[1].linear.weight)
    by_actor = {id(p) for p in agent.actor_optimizer.parameters}
    assert {id(p) for p in heads[1].parameters()} <= by_actor
    assert not by_actor & {id(p) for p in agent.encoder.parameters()}
    assert torch.equal(agent.target_encoder.body.layers[0].weight, agent.encoder.body.layers[0].weight)
    assert agent.target_encoder.body is not agent.encoder.body


def pickled(state):
    return pickle.loads(pickle.dumps(state))


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize("kept", [copy.deepcopy, pickled, through_a_file])
@pytest.mark.parametrize(
    ("loss", "augmentation", "views", "actor_encoder"),
    [
        (WINNER, "crop", 1, "shared"),
        (CURL, "crop", 1, "shared"),
        (None, "shift", 2, "shared"),
        (WINNER, "none", 1, "own"),
    ],
)
def test_a_restored_agent_goes_on_bit_for_bit(kept, loss, augmentation, views, actor_encoder):
    agent, other = (
        make_agent(loss, seed, augmentation=augmentation, augmented_views=views, actor_encoder=actor_encoder)
        for seed in (0, 1)
    )

    def go_on(agent):
        results = []
        for i in range(3, 6):
            results += [figure() for figure in agent.update(transitions(i), sequences(loss, i)).values()]
            results.append(agent.act(images(2), deterministic=False))
        return [*results, *snapshot(agent).values(), agent.generator.get_state()]

    for i in range(3):
        agent.update(transitions(i), sequences(loss, i))
    other.load_state_dict(kept(agent.state_dict()))
    assert shares_convolutions(other) == (actor_encoder == "shared")
    assert all(torch.equal(a, b) for a, b in zip(go_on(agent), go_on(other), strict=True))
    assert shares_convolutions(other) == (actor_encoder == "shared")
