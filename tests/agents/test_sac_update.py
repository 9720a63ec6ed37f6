"""Updates of SAC against the same updates written out, what each step may touch, and going on from a state."""

import io

import pytest
import torch

from a2ls._errors import BadInput
from a2ls.agents import Agent
from a2ls.space import OPERATORS, Loss
from helpers.agents import (
    ACTION,
    CURL,
    WINNER,
    changed,
    images,
    learn,
    make_agent,
    part,
    pixel_agent,
    sequences,
    snapshot,
    transitions,
    vectors,
)
from helpers.sac_reference import Reference

# Of each kind several, on both sides.
MANY = Loss.parse("s0 a0 r0 s2 -> s1 r1 a2 s3")
BILINEAR = Loss.parse("s0 a0 -> s1 | bilinear +neg")
CASES = [
    (make_agent, Loss(MANY.horizon, MANY.source, MANY.target, operator), {"actor_encoder": ("own", "shared")[i % 2]})
    for i, operator in enumerate(sorted(OPERATORS))
] + [
    (make_agent, None, {}),
    (make_agent, WINNER, {"auxiliary_weight": 0.3}),
    (make_agent, WINNER, {"predictor": "released", "encoder": "mlp", "encoder_layers": 2}),
    (make_agent, WINNER, {"encoder": "dense", "encoder_layers": 3, "gamma": 0.5, "initial_alpha": 0.7}),
    (make_agent, WINNER, {"encoder": "identity", "actor_encoder": "shared"}),
    (make_agent, None, {"encoder": "identity", "actor_every": 3, "target_every": 2}),
    (make_agent, MANY, {"augmentation": "scale", "critic_tau": 0.4, "encoder_tau": 0.3}),
    (make_agent, WINNER, {"augmentation": "noise", "augmented_views": 2, "actor_encoder": "shared"}),
    (pixel_agent, WINNER, {}),
    (pixel_agent, CURL, {}),
    (pixel_agent, MANY, {"augmentation": "translate", "image_size": 18}),
    (pixel_agent, None, {"augmentation": "shift", "augmented_views": 2}),
    (pixel_agent, WINNER, {"augmented_views": 3}),
    (pixel_agent, CURL, {"augmentation": "none", "actor_encoder": "own"}),
    (make_agent, CURL, {"auxiliary_batch": "critic"}),
    (pixel_agent, CURL, {"auxiliary_batch": "critic"}),
    (pixel_agent, CURL, {"auxiliary_batch": "critic", "augmentation": "shift", "augmented_views": 2}),
    (make_agent, Loss.parse("s0 a0 -> s1 a1 | nmse"), {"predictor": "none"}),
    (pixel_agent, Loss.parse("s0 a0 s1 -> s1 s2"), {"auxiliary_views": "shared"}),
    (make_agent, MANY, {"auxiliary_views": "shared", "augmentation": "noise"}),
]  # fmt: skip


def case_id(value):
    return value.__name__ if callable(value) else str(value)


def observed_by(make):
    return images if make is pixel_agent else vectors


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("make", "loss", "settings"), CASES, ids=case_id)
def test_updates_are_those_of_the_reference(make, loss, settings):
    agent, observed = make(loss, **settings), observed_by(make)
    reference, start, expected, metrics = Reference(agent), snapshot(agent), [], []
    for i in range(5):
        metrics += learn(agent, i, i + 1, loss, observed)
        expected.append(reference.update(transitions(i, observed), sequences(loss, i, observed), **agent.schedule(i)))
        for name, value in snapshot(agent).items():
            wanted = reference.p[name].detach()
            torch.testing.assert_close(value, wanted, rtol=1e-9, atol=1e-9, msg=f"{name} after update {i}")
        assert all(parameter.grad is None for parameter in agent.parameters())
    # Looked at only now: the metrics of an update stay what they were.
    for mine, theirs in zip(metrics, expected, strict=True):
        assert {name: value.item() for name, value in mine.items()} == pytest.approx(theirs, rel=1e-9, abs=1e-9)
        assert not any(value.requires_grad or value.shape for value in mine.values())
    assert torch.equal(agent.generator.get_state(), reference.generator.get_state())
    # Layers of its own below the actor's head stay as they were initialised.
    assert changed(start, snapshot(agent)) == {part(name) for name in start} - {"actor_body"}
    obs = observed(3, 7)
    mean, std = reference.gaussian(agent.augmentation.plain(obs))
    noise = torch.randn(3, ACTION, generator=reference.generator)
    torch.testing.assert_close(agent.act(obs, deterministic=True), mean.tanh().detach())
    torch.testing.assert_close(agent.act(obs, deterministic=False), (mean + std * noise).tanh().detach())


def test_actor_and_targets_have_their_turns():
    schedule = make_agent(actor_every=3, target_every=4).schedule
    assert [schedule(i) for i in range(12)] == [{"actor": i % 3 == 0, "targets": i % 4 == 0} for i in range(12)]


@pytest.mark.parametrize(
    ("make", "loss", "settings", "updates"),
    [
        (make_agent, BILINEAR, {}, 0),
        (make_agent, WINNER, {"predictor": "released", "actor_encoder": "shared", "augmentation": "noise"}, 3),
        (make_agent, None, {"encoder": "identity"}, 3),
        (pixel_agent, CURL, {}, 3),
        (pixel_agent, WINNER, {"augmentation": "shift", "augmented_views": 2, "actor_encoder": "own"}, 3),
    ],
    ids=case_id,
)
def test_a_restored_agent_goes_on_bit_for_bit(make, loss, settings, updates):
    agent, other, observed = make(loss, **settings), make(loss, seed=1, **settings), observed_by(make)
    learn(agent, 0, updates, loss, observed)
    learn(other, 0, 2, loss, observed)
    file = io.BytesIO()
    torch.save(agent.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert (other.actor_body is other.encoder.body) == (other.config.actor_encoder == "shared")

    def go_on(agent):
        figures = [value for each in learn(agent, updates, updates + 3, loss, observed) for value in each.values()]
        actions = agent.act(observed(), deterministic=False)
        return [*figures, actions, *agent.parameters(), *agent.buffers(), agent.generator.get_state()]

    assert all(torch.equal(a, b) for a, b in zip(go_on(agent), go_on(other), strict=True))


@pytest.mark.parametrize("make", [make_agent, pixel_agent])
def test_the_seed_determines_weights_and_noise_and_the_global_generator_is_left_alone(make):
    def learnt(seed, loss=BILINEAR):
        agent = make(loss, seed=seed)
        start, actions = snapshot(agent), agent.act(observed_by(make)(), deterministic=False)
        learn(agent, 0, 2, loss, observed_by(make))
        return start, [actions, *snapshot(agent).values()]

    torch.manual_seed(5)
    before = torch.get_rng_state()
    start, first = learnt(0)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(6)
    assert all(torch.equal(a, b) for a, b in zip(first, learnt(0)[1], strict=True))
    assert not torch.equal(first[0], learnt(1)[1][0])
    # A loss leaves the other networks as they are without.
    assert changed(learnt(0, None)[0], start) == set()


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(
    ("make", "settings"), [(make_agent, {"augmentation": "noise"}), (pixel_agent, {})], ids=case_id
)
def test_the_value_loss_is_the_critics_loss_as_a_function_of_their_weights_alone(make, settings):
    agent, batch = make(None, **settings), transitions(0, observed_by(make))
    own, drawn = agent.generator.get_state(), torch.Generator().manual_seed(9)
    networks, value = agent.value_loss(batch, drawn)
    first = value()
    assert torch.equal(own, agent.generator.get_state())
    assert not torch.equal(drawn.get_state(), torch.Generator().manual_seed(9).get_state())
    assert {id(p) for p in networks.parameters()} == {
        id(p) for m in (agent.encoder, agent.critic) for p in m.parameters()
    }
    # It is what an update with the same noise reports as its loss.
    agent.generator.set_state(torch.Generator().manual_seed(9).get_state())
    reported = agent.update(batch, actor=False)["critic_loss"].item()
    assert first.item() == pytest.approx(reported, rel=1e-12)
    assert value().item() != pytest.approx(reported)
    assert value().item() == value().item()
    with torch.no_grad():  # Neither the targets nor the policy are of any matter any more.
        kept = value().item()
        for network in (agent.target_critic, agent.target_encoder, agent.actor):
            for parameter in network.parameters():
                parameter.add_(1.0)
    assert value().item() == kept
    with pytest.raises(BadInput, match="Agent has no value_loss"):
        Agent().value_loss(batch, drawn)


def test_what_is_not_finite_shows_in_the_metrics_and_the_weights():
    agent, batch = make_agent(None), transitions()
    batch.rewards[1] = float("nan")
    assert agent.update(batch)["critic_loss"].isnan()
    assert agent.critic.q1[-1].weight.isnan().any()


def test_sequences_without_an_auxiliary_loss_are_refused():
    with pytest.raises(ValueError, match="without an auxiliary loss"):
        (agent := make_agent(None)).update(transitions(), sequences(WINNER))
    assert changed(snapshot(agent), snapshot(make_agent(None))) == set()  # Before anything is learned.
