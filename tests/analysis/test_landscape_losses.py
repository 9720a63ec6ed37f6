"""The loss around weights, and that it is the critic's."""

import numpy as np
import pytest
import torch

from a2ls.agents import Transitions
from a2ls.analysis.landscape._landscape import losses_around
from helpers.agents import AGENTS, generator, some_agent


def test_a_quadratic_loss_has_its_analytic_values():
    rng = np.random.default_rng(0)
    start, first, second = ([rng.normal(size=shape) for shape in ((3, 2), (4,))] for _ in range(3))
    weights = [torch.from_numpy(each.copy()) for each in start]
    points = [(x, y) for y in (-0.7, 0.0, 0.2) for x in (-1.0, 0.0, 0.3, 2.0)]
    calls = []
    losses = losses_around(
        weights,
        tuple([torch.from_numpy(each) for each in direction] for direction in (first, second)),
        points,
        lambda: float(3 * weights[0].square().sum() + (weights[1] - 1).square().sum()),
        lambda: calls.append(1),
    )
    expected = [
        3 * ((start[0] + x * first[0] + y * second[0]) ** 2).sum()
        + ((start[1] + x * first[1] + y * second[1] - 1) ** 2).sum()
        for x, y in points
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-12)
    assert len(calls) == len(points)
    assert [each.numpy().tobytes() for each in weights] == [each.tobytes() for each in start]


def test_the_weights_are_restored_if_the_loss_fails():
    weight = torch.randn(3, 2)
    before = weight.clone()

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        losses_around([weight], ([torch.ones(3, 2)], [torch.ones(3, 2)]), [(1.0, 1.0)], interrupted)
    assert torch.equal(weight, before)


def random_batch(observation, count=12):
    rng = np.random.default_rng(1)

    def states():
        if len(observation) == 1:
            return torch.from_numpy(rng.normal(size=(count, *observation)).astype(np.float32))
        return torch.from_numpy(rng.integers(0, 256, (count, *observation), dtype=np.uint8))

    return Transitions(
        states(),
        torch.from_numpy(rng.uniform(-1, 1, (count, 2)).astype(np.float32)),
        torch.from_numpy(rng.normal(size=count).astype(np.float32)),
        states(),
        torch.from_numpy((rng.random(count) > 0.3).astype(np.float32)),
    )


@pytest.mark.parametrize("kind", AGENTS)
def test_the_loss_is_that_of_an_update_with_the_same_noise(kind):
    observation, settings = AGENTS[kind]
    agent = some_agent(observation, **settings)
    batch = random_batch(observation)
    noise = torch.Generator()
    noise.set_state(agent.generator.get_state())
    _, loss = agent.value_loss(batch, noise)
    before = float(loss())
    assert before == pytest.approx(float(agent.update(batch)["critic_loss"]), rel=1e-6)
    # The update has moved the weights, and with them the loss.
    assert float(loss()) != pytest.approx(before, rel=1e-4)


def test_targets_are_those_of_the_trained_weights_everywhere():
    agent = some_agent((5,))
    batch, noise = random_batch((5,)), generator()
    target = value_target(agent, batch)
    networks, loss = agent.value_loss(batch, noise)
    assert {*networks.parameters()} == {*agent.encoder.parameters(), *agent.critic.parameters()}
    with torch.no_grad():
        agent.critic.q1[-1].bias += 7.0
    values = agent.critic(agent.encoder(batch.obs), batch.actions)
    expected = sum(((value.detach() - target) ** 2).mean() for value in values)
    assert float(loss()) == pytest.approx(float(expected), rel=1e-5)


def value_target(agent, batch):
    own, agent.generator = agent.generator, generator()
    target = agent.critic_target(batch)
    agent.generator = own
    return target
