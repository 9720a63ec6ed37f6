"""Updates of Rainbow against the same updates written out, and going on from a state."""

import io

import pytest
import torch

from a2ls.recorder import Recorded
from a2ls.space import Loss, named_loss
from helpers.agents import snapshot, vectors
from helpers.rainbow_agents import given_to, rainbow, screen_rainbow, screens, sequences, transitions
from helpers.rainbow_reference import Reference

CURL = named_loss("curl")
ALL_KINDS = Loss.parse("s0 a0 r0 -> s1")
# Of each kind several, on both sides.
MANY = Loss.parse("s0 a0 r0 s2 -> s1 r1 a2 s3")
CASES = [
    (rainbow, None, {}),
    (rainbow, None, {"encoder": "identity", "target_every": 2, "max_gradient_norm": 0.5}),
    (rainbow, ALL_KINDS, {}),
    (rainbow, ALL_KINDS, {"encoder": "mlp", "encoder_layers": 2, "auxiliary_weight": 0.3, "max_gradient_norm": 1.0}),
    (rainbow, MANY, {"encoder_layers": 3, "gamma": 0.97, "atoms": 51, "value_min": -10.0, "value_max": 10.0}),
    (rainbow, ALL_KINDS, {"encoder": "identity", "augmented": "all"}),
    (rainbow, CURL, {"auxiliary_batch": "shared"}),
    (rainbow, named_loss("spr-2"), {"predictor": "transition", "auxiliary_weight": 2.0}),
    (screen_rainbow, None, {}),
    (screen_rainbow, None, {"augmented": "all"}),
    (screen_rainbow, CURL, {"auxiliary_batch": "shared", "auxiliary_weight": 0.01}),
    (screen_rainbow, ALL_KINDS, {"augmented": "all"}),
    (screen_rainbow, Loss.parse("s0 a1 s1 -> s1 s2"), {"max_gradient_norm": 0.2}),
]


def case_id(value):
    return value.__name__ if callable(value) else str(value)


def observed_by(make):
    return screens if make is screen_rainbow else vectors


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("make", "loss", "settings"), CASES, ids=case_id)
def test_updates_are_those_of_the_reference(make, loss, settings):
    agent, observed = make(loss, **settings), observed_by(make)
    reference, copies = Reference(agent), 0
    for i in range(5):
        batch, given, schedule = transitions(i, observed), given_to(agent, loss, i, observed), agent.schedule(i)
        copies += schedule["targets"]
        metrics, expected = agent.update(batch, given, **schedule), reference.update(batch, given, **schedule)
        assert {name: value.tolist() for name, value in metrics.items()} == {
            name: pytest.approx(value, rel=1e-9, abs=1e-9) for name, value in expected.items()
        }
        assert not any(value.requires_grad for value in metrics.values())
        for name, value in snapshot(agent).items():
            wanted = reference.p[name].detach()
            torch.testing.assert_close(value, wanted, rtol=1e-9, atol=1e-9, msg=f"{name} after update {i}")
        assert all(parameter.grad is None for parameter in agent.parameters())
    assert 1 < copies < 5
    assert reference.disagreements > 0
    assert torch.equal(agent.generator.get_state(), reference.generator.get_state())
    obs = observed(20, 7)
    plain = reference.best(reference.distributions("encoder.body", "returns", obs, noisy=False))
    assert torch.equal(agent.act(obs, deterministic=True), plain)
    noisy = reference.best(reference.distributions("encoder.body", "returns", obs))
    assert torch.equal(agent.act(obs, deterministic=False), noisy)


def test_targets_are_copied_when_it_is_their_turn():
    schedule = rainbow(target_every=4).schedule
    assert [i for i in range(12) if schedule(i)["targets"]] == [0, 4, 8]


@pytest.mark.parametrize(
    ("make", "loss", "settings"),
    [(rainbow, ALL_KINDS, {}), (screen_rainbow, CURL, {"auxiliary_batch": "shared", "augmented": "all"})],
    ids=case_id,
)
def test_a_restored_agent_goes_on_bit_for_bit(make, loss, settings):
    settings = {"evaluation_epsilon": 0.5, **settings}
    agent, other, observed = make(loss, **settings), make(loss, seed=1, **settings), observed_by(make)

    def learn(agent, start, stop):
        for i in range(start, stop):
            metrics = agent.update(transitions(i, observed), given_to(agent, loss, i, observed), **agent.schedule(i))
        return [*metrics.values(), *(agent.act(observed(50), deterministic=yes) for yes in (True, False))]

    learn(agent, 0, 4)
    learn(other, 0, 2)
    file = io.BytesIO()
    torch.save(agent.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    one, two = ([*learn(each, 4, 8), *each.parameters()] for each in (agent, other))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("make", [rainbow, screen_rainbow])
def test_the_seed_determines_weights_and_noise_and_the_global_generator_is_left_alone(make):
    observed = observed_by(make)

    def learnt(seed, loss=ALL_KINDS):
        agent = make(loss, seed=seed)
        start = snapshot(agent)
        agent.update(transitions(0, observed), given_to(agent, loss, 0, observed))
        agent.act(observed(), deterministic=False)
        return start, snapshot(agent)

    torch.manual_seed(5)
    before = torch.get_rng_state()
    start, first = learnt(0)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(6)
    again, other = learnt(0)[1], learnt(1)[1]
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first if name.endswith("value.weight"))
    # A loss leaves the other networks as they are without.
    without = learnt(0, None)[0]
    assert all(torch.equal(start[name], value) for name, value in without.items())


@pytest.mark.parametrize(
    ("loss", "settings"), [(None, {}), (ALL_KINDS, {"max_gradient_norm": 0.5}), (CURL, {"auxiliary_batch": "shared"})]
)
def test_recorded_updates_and_actions_are_those_of_pytorch(loss, settings):
    plain, other = (rainbow(loss, evaluation_epsilon=0.3, **settings) for _ in range(2))
    update, act = (Recorded(function, state=other) for function in (other.update, other.act))
    for i in range(10):
        given = given_to(plain, loss, i)
        expected = plain.update(transitions(i), given, **plain.schedule(i))
        found = update(transitions(i), given, **other.schedule(i))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-4)
        for deterministic in (True, False):
            actions = act(vectors(5, i), deterministic=deterministic)
            assert torch.equal(actions, plain.act(vectors(5, i), deterministic=deterministic))
    for one, two in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-4)
    assert torch.equal(plain.generator.get_state(), other.generator.get_state())


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("make", "settings"), [(rainbow, {}), (screen_rainbow, {"augmented": "all"})], ids=case_id)
def test_the_value_loss_is_that_of_an_update_without_noise_as_a_function_of_the_weights_alone(make, settings):
    agent, batch = make(None, noisy_sigma=0.0, **settings), transitions(0, observed_by(make))._replace(weights=None)
    own, drawn = agent.generator.get_state(), torch.Generator().manual_seed(9)
    networks, value = agent.value_loss(batch, drawn)
    first = value().item()
    assert value().item() == first
    assert torch.equal(own, agent.generator.get_state())
    assert {id(p) for p in networks.parameters()} == {
        id(p) for m in (agent.encoder.body, agent.returns) for p in m.parameters()
    }
    # It is what an update with the same views reports.
    agent.generator.set_state(torch.Generator().manual_seed(9).get_state())
    assert agent.update(batch)["value_loss"].item() == pytest.approx(first, rel=1e-12)
    after = value().item()
    assert after != pytest.approx(first)
    with torch.no_grad():  # The targets are of no matter any more, and neither is noise.
        for network in (agent.target_body, agent.target_returns, agent.momentum_encoder):
            for parameter in network.parameters():
                parameter.add_(1.0)
        agent.returns.value.weight_sigma.fill_(9.0)
    assert value().item() == after


def test_sequences_without_an_auxiliary_loss_are_refused():
    agent = rainbow()
    with pytest.raises(ValueError, match="without an auxiliary loss"):
        agent.update(transitions(), sequences(ALL_KINDS))
    fresh = snapshot(rainbow())
    assert all(torch.equal(value, fresh[name]) for name, value in snapshot(agent).items())


@pytest.mark.parametrize("field", ["obs", "rewards", "next_obs"])
def test_what_is_not_finite_shows_in_the_metrics(field):
    agent, batch = rainbow(), transitions()
    batch.continues[1] = 1.0
    getattr(batch, field)[1] = float("nan")
    assert agent.update(batch)["value_loss"].isnan()
