"""One update of SAC against the same update written out with plain torch, and what each of its steps may touch."""

import io
import math

import pytest
import torch
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from a2ls.agents import SAC, SACConfig, Transitions
from a2ls.auxiliary import Sequences
from a2ls.space import OPERATORS, Loss, named_loss

OBSERVATION, ACTION, BATCH = 4, 2, 12
SMALL = SACConfig(
    hidden=16,
    predictor_hidden=8,
    learning_rate=3e-3,
    predictor_learning_rate=4e-3,
    encoder_learning_rate=8e-3,
    temperature_learning_rate=2e-2,
)
WINNER = named_loss("a2-winner")


@pytest.fixture
def _double():
    """All in float64, so that a comparison after several Adam steps is one of formulas and not of rounding."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make_agent(loss=WINNER, seed=0, **settings):
    return SAC(OBSERVATION, ACTION, SACConfig(**{**vars(SMALL), **settings}), loss, seed=seed)


def transitions(seed=0, **changes):
    generator = torch.Generator().manual_seed(seed)
    fields = {
        "observations": torch.randn(BATCH, OBSERVATION, generator=generator),
        "actions": torch.rand(BATCH, ACTION, generator=generator) * 2 - 1,
        "rewards": torch.randn(BATCH, generator=generator),
        "next_observations": torch.randn(BATCH, OBSERVATION, generator=generator),
        "continues": (torch.rand(BATCH, generator=generator) > 0.3).to(torch.get_default_dtype()),
    }
    return Transitions(**{**fields, **changes})


def sequences(seed=0):
    generator = torch.Generator().manual_seed(1000 + seed)
    return Sequences(
        torch.randn(4, BATCH, OBSERVATION, generator=generator),
        torch.randn(4, BATCH, ACTION, generator=generator),
        torch.randn(4, BATCH, generator=generator),
    )


def snapshot(agent):
    return {name: p.detach().clone() for name, p in agent.named_parameters()}


def part(name):
    """The network of a parameter; the actor's encoder is two, since its head alone is the actor's to train."""
    return ".".join(name.split(".")[: 2 if name.startswith("actor_encoder") else 1])


def changed(before, after):
    """The networks of which any parameter is not as it was."""
    return {part(name) for name in before if not torch.equal(before[name], after[name])}


class Reference:
    """SAC with A2-winner on a one-layer DenseMLP, from the agent's weights but in formulas of its own."""

    def __init__(self, agent):
        self.p = {name: value.requires_grad_() for name, value in snapshot(agent).items()}
        self.config = agent.config
        self.actor_body = {"own": "actor_encoder", "shared": "encoder"}[agent.config.actor_encoder]
        self.generator = torch.Generator()
        self.generator.set_state(agent.generator.get_state())
        rate = agent.config.learning_rate
        encoder, auxiliary = self.named("encoder."), self.named("auxiliary.")
        self.critic_adam = torch.optim.Adam([*encoder, *self.named("critic.")], rate, betas=(0.9, 0.999))
        self.actor_adam = torch.optim.Adam([*self.named("actor."), *self.named("actor_encoder.head.")], rate)
        self.temperature_adam = torch.optim.Adam(
            [self.p["log_temperature"]], agent.config.temperature_learning_rate, betas=(0.5, 0.999)
        )
        # As in the published code: one Adam steps encoder and predictor, another of the same rate the encoder again.
        rate = agent.config.predictor_learning_rate
        self.auxiliary_adams = [torch.optim.Adam([*encoder, *auxiliary], rate), torch.optim.Adam(encoder, rate)]
        self.updates = 0
        self.metrics = {}

    def named(self, prefix):
        return [value for name, value in self.p.items() if name.startswith(prefix)]

    def body(self, name, x):
        p = self.p
        return torch.cat(
            [x, (x @ p[f"{name}.body.layers.0.weight"].T + p[f"{name}.body.layers.0.bias"]).clamp(min=0)], 1
        )

    def head(self, name, x):
        p = self.p
        x = x @ p[f"{name}.linear.weight"].T + p[f"{name}.linear.bias"]
        x = (x - x.mean(1, keepdim=True)) / (x.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        return x * p[f"{name}.norm.weight"] + p[f"{name}.norm.bias"]

    def encode(self, name, x):
        return self.head(f"{name}.head", self.body(name, x))

    def mlp(self, name, layers, x):
        for layer in layers:
            if layer != layers[0]:
                x = x.clamp(min=0)
            x = x @ self.p[f"{name}.{layer}.weight"].T + self.p[f"{name}.{layer}.bias"]
        return x

    def q(self, name, i, features, actions):
        x = torch.cat([features, actions], 1)
        for layer in ("first", "second", "last"):
            if layer != "first":
                x = x.clamp(min=0)
            x = x @ self.p[f"{name}.{layer}.weight"][i] + self.p[f"{name}.{layer}.bias"][i]
        return x[:, 0]

    def policy(self, observations):
        """An action and its log-probability; the body is a constant for the actor."""
        features = self.head("actor_encoder.head", self.body(self.actor_body, observations).detach())
        mean, log_std = self.mlp("actor.layers", (0, 1, 2), features).chunk(2, dim=1)
        std = (-10 + 6 * (log_std.tanh() + 1)).exp()
        noise = torch.randn(BATCH, ACTION, generator=self.generator)
        action = (mean + std * noise).tanh()
        return action, TransformedDistribution(Normal(mean, std), TanhTransform(cache_size=0)).log_prob(action).sum(1)

    def update(self, batch, sequence):
        p, alpha = self.p, self.p["log_temperature"].exp()
        # Critics: r + gamma (min Q'(s', a') - alpha log pi(a'|s')).
        next_actions, log_probability = self.policy(batch.next_observations)
        next_features = self.encode("target_encoder", batch.next_observations)
        next_q = torch.minimum(*(self.q("target_critic", i, next_features, next_actions) for i in range(2)))
        target = batch.rewards + self.config.discount * batch.continues * (next_q - alpha * log_probability)
        features = self.encode("encoder", batch.observations)
        errors = [(self.q("critic", i, features, batch.actions) - target.detach()).square().mean() for i in range(2)]
        self.metrics = {"critic_loss": self.step(self.critic_adam, errors[0] + errors[1])}
        if self.updates % 2 == 0:
            actions, log_probability = self.policy(batch.observations)
            features = self.encode("encoder", batch.observations).detach()
            q = torch.minimum(*(self.q("critic", i, features, actions) for i in range(2)))
            actor_loss = self.step(self.actor_adam, (alpha.detach() * log_probability - q).mean())
            self.metrics |= {"actor_loss": actor_loss, "entropy": -log_probability.mean().item()}
            self.metrics["temperature"] = alpha.item()
            # The temperature falls where the entropy is above minus the number of actions.
            self.step(self.temperature_adam, (p["log_temperature"].exp() * (-log_probability + ACTION).detach()).mean())
            for name, value in p.items():
                if name.startswith("target_"):
                    tau = 0.01 if name.startswith("target_critic") else 0.05
                    value.data = tau * p[name.removeprefix("target_")].data + (1 - tau) * value.data
        if sequence is not None:
            s, a, r = sequence.states, sequence.actions, sequence.rewards
            source = torch.cat([self.encode("encoder", s[1]), a[1], a[2], a[3]], 1)
            y_hat = [r[0][:, None], r[1][:, None], *(self.encode("target_encoder", s[i]).detach() for i in (2, 3))]
            error = self.mlp("auxiliary.predictor.layers", (0, 1), source) - torch.cat(y_hat, 1)
            self.metrics["auxiliary_loss"] = error.square().mean().item()
            self.step(self.auxiliary_adams[0], self.config.auxiliary_weight * error.square().mean())
            self.auxiliary_adams[1].step()
        self.updates += 1

    def step(self, optimizer, loss):
        for value in self.p.values():
            value.grad = None
        loss.backward()
        optimizer.step()
        return loss.item()


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("actor_encoder", ["own", "shared"])
@pytest.mark.parametrize(("loss", "weight"), [(WINNER, 1.0), (WINNER, 0.3), (None, 1.0)], ids=str)
def test_updates_are_those_of_plain_torch(loss, weight, actor_encoder):
    agent = make_agent(loss, auxiliary_weight=weight, actor_encoder=actor_encoder)
    reference = Reference(agent)
    start = snapshot(agent)
    for i in range(5):
        sequence = None if loss is None else sequences(i)
        metrics = agent.update(transitions(i), sequence)
        reference.update(transitions(i), sequence)
        assert {name: figure().item() for name, figure in metrics.items() if name != "value"} == pytest.approx(
            reference.metrics
        )
        for name, value in snapshot(agent).items():
            torch.testing.assert_close(
                value, reference.p[name].detach(), rtol=1e-7, atol=1e-9, msg=f"{name}, update {i}"
            )
    # Layers of its own below the actor's head stay as they were initialised.
    assert changed(start, snapshot(agent)) == {part(name) for name in start} - {"actor_encoder.body"}


def test_an_odd_update_trains_critic_and_encoder_alone():
    agent = make_agent()
    agent.updates = 1
    before = snapshot(agent)
    agent.update(transitions())
    assert changed(before, snapshot(agent)) == {"encoder", "critic"}


def test_the_actors_step_trains_neither_critic_nor_encoder():
    even, odd = make_agent(), make_agent()
    odd.updates = 1
    even.update(transitions())
    odd.update(transitions())
    assert changed(snapshot(odd), snapshot(even)) == {
        "actor", "actor_encoder.head", "log_temperature", "target_critic", "target_encoder",
    }  # fmt: skip


def test_the_auxiliary_step_trains_encoder_and_predictor_alone():
    with_sequences, without = make_agent(), make_agent()
    for agent, given in ((with_sequences, sequences()), (without, None)):
        agent.update(transitions(), given)
    assert changed(snapshot(without), snapshot(with_sequences)) == {"encoder", "auxiliary"}
    before = snapshot(without)
    assert changed(snapshot(make_agent()), before) == {
        "actor", "actor_encoder.head", "critic", "encoder", "log_temperature", "target_critic", "target_encoder",
    }  # fmt: skip


def test_no_gradient_is_left_over_for_the_next_update():
    agent = make_agent()
    agent.update(transitions(), sequences())
    assert all(parameter.grad is None for parameter in agent.parameters())


def test_targets_start_as_copies_and_move_every_second_update_only():
    agent = make_agent()
    pairs = {name: name.removeprefix("target_") for name in snapshot(agent) if name.startswith("target_")}
    start = snapshot(agent)
    assert all(torch.equal(start[target], start[source]) for target, source in pairs.items())
    moved = []
    for i in range(6):
        before = snapshot(agent)
        agent.update(transitions(i))
        moved.append(bool(changed(before, snapshot(agent)) & {"target_critic", "target_encoder"}))
    assert moved == [True, False] * 3


def test_actor_and_targets_have_intervals_of_their_own():
    agent, seen = make_agent(None, actor_every=3, target_every=4), []
    for i in range(8):
        before = snapshot(agent)
        agent.update(transitions(i))
        after = changed(before, snapshot(agent))
        seen.append(("actor" in after, "target_critic" in after))
    assert seen == [(i % 3 == 0, i % 4 == 0) for i in range(8)]


@pytest.mark.parametrize(("log_std_input", "rises"), [(-3.0, True), (math.atanh(2 / 3), False)])
def test_temperature_rises_where_entropy_is_below_minus_the_number_of_actions(log_std_input, rises):
    # A standard deviation of about e^-10 has next to no entropy; one of 1, squashed, has 0.6 a dimension.
    agent = make_agent(None)
    with torch.no_grad():
        last = agent.actor.layers[-1]
        last.weight.zero_()
        last.bias.copy_(torch.tensor([0.0] * ACTION + [log_std_input] * ACTION))
    before = agent.log_temperature.item()
    assert before == pytest.approx(math.log(0.1))
    metrics = agent.update(transitions())
    assert (metrics["entropy"]().item() < -ACTION) == rises
    assert (agent.log_temperature.item() > before) == rises


def test_what_follows_the_end_of_a_task_does_not_count():
    def values_after(continues, next_seed):
        agent = make_agent(None)
        following = transitions(next_seed).next_observations
        for _ in range(2):  # Adam's first step is the same for all gradients of one sign.
            agent.update(transitions(continues=torch.full((BATCH,), continues), next_observations=following))
        return snapshot(agent)["critic.last.weight"]

    assert torch.equal(values_after(0.0, 5), values_after(0.0, 6))
    assert not torch.equal(values_after(1.0, 5), values_after(1.0, 6))


def test_without_a_bootstrap_the_critics_learn_the_reward():
    agent, batch = make_agent(None), transitions(continues=torch.zeros(BATCH))
    for _ in range(400):
        loss = agent.update(batch)["critic_loss"]().item()
    assert loss < 1e-2
    values = agent.critic(agent.encoder(batch.observations), batch.actions)
    torch.testing.assert_close(values, batch.rewards.expand(2, -1), atol=0.2, rtol=0)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_figures_do_not_change_until_somebody_looks(operator):
    at_once, later = (make_agent(Loss.parse(f"s0 a0 -> s1 | {operator}"), compiled=False) for _ in range(2))
    watched = [{name: figure() for name, figure in watch.items()} for watch in _updates(at_once)]
    assert [{name: figure() for name, figure in watch.items()} for watch in list(_updates(later))] == watched
    assert len(watched[0]) == 6


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_figures_of_compiled_updates_are_those_without_and_cannot_be_looked_at_too_late(operator):
    loss = Loss.parse(f"s0 a0 -> s1 | {operator}")
    compiled, plain = make_agent(loss), make_agent(loss, compiled=False)
    earlier = {}
    for figures, expected in zip(_updates(compiled), _updates(plain), strict=True):
        shown = {name: figure().item() for name, figure in figures.items()}
        assert shown == pytest.approx({name: figure().item() for name, figure in expected.items()}, rel=1e-4, abs=1e-5)
        earlier.setdefault(len(figures), figures)
    for figure in earlier[6].values():
        with pytest.raises(RuntimeError, match="must be looked at before the next"):
            figure()


def test_the_value_is_the_mean_of_both_critics_before_their_step():
    agent, batch = make_agent(None), transitions()
    with torch.no_grad():
        values = agent.critic(agent.encoder(batch.observations), batch.actions)
    assert agent.update(batch)["value"]().item() == pytest.approx(values.mean().item())


def _updates(agent):
    return (agent.update(transitions(i), sequences(i)) for i in range(4))


@pytest.mark.parametrize("loss", [WINNER, Loss.parse("s0 a0 -> s1 | bilinear +neg"), None], ids=str)
@pytest.mark.parametrize(("predictor", "actor_encoder"), [("paper", "own"), ("released", "shared")])
def test_a_restored_agent_goes_on_bit_for_bit(loss, predictor, actor_encoder):
    agent, other = (make_agent(loss, s, predictor=predictor, actor_encoder=actor_encoder) for s in (0, 1))

    def go_on(agent):
        results = []
        for i in range(3, 7):
            metrics = agent.update(transitions(i), None if loss is None else sequences(i))
            results += [figure() for figure in metrics.values()]
            results.append(agent.act(transitions(i).observations, deterministic=False))
        return [*results, *snapshot(agent).values(), *agent.buffers()]

    for i in range(3):
        agent.update(transitions(i), None if loss is None else sequences(i))
    file = io.BytesIO()
    torch.save(agent.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert other.updates == 3
    assert all(torch.equal(a, b) for a, b in zip(go_on(agent), go_on(other), strict=True))


def test_the_seed_determines_weights_and_noise():
    observations = transitions().observations
    actions = [make_agent(seed=seed).act(observations, deterministic=False) for seed in (0, 0, 1)]
    assert torch.equal(actions[0], actions[1])
    assert not torch.equal(actions[0], actions[2])
    assert changed(snapshot(make_agent(seed=0)), snapshot(make_agent(seed=0))) == set()
    plain, auxiliary = snapshot(make_agent(None)), snapshot(make_agent(WINNER))
    assert all(torch.equal(plain[name], auxiliary[name]) for name in plain)  # a loss leaves the rest as it is


def test_the_global_generator_is_left_alone():
    torch.manual_seed(123)
    before = torch.get_rng_state()
    agent = make_agent(Loss.parse("s0 a0 -> s1 | bilinear"))
    agent.act(transitions().observations, deterministic=False)
    agent.update(transitions(), sequences())
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("actor_encoder", ["own", "shared"])
def test_acting_is_the_reference_policy(actor_encoder):
    agent, observations = make_agent(actor_encoder=actor_encoder), transitions().observations
    agent.update(transitions(), sequences())
    reference = Reference(agent)
    features = reference.head("actor_encoder.head", reference.body(reference.actor_body, observations))
    mean = reference.mlp("actor.layers", (0, 1, 2), features)[:, :ACTION].tanh()
    torch.testing.assert_close(agent.act(observations, deterministic=True), mean.detach(), atol=1e-5, rtol=0)
    sampled = reference.policy(observations)[0]
    torch.testing.assert_close(agent.act(observations, deterministic=False), sampled.detach(), atol=1e-5, rtol=0)
    assert not agent.act(observations, deterministic=True).requires_grad


@pytest.mark.parametrize("loss", [WINNER, None], ids=str)
def test_without_an_encoder_only_the_predictor_learns_from_the_auxiliary_loss(loss):
    agent = make_agent(loss, encoder="identity")
    assert not [name for name in snapshot(agent) if "encoder" in name or "head" in name]
    before = snapshot(agent)
    agent.update(transitions(), None if loss is None else sequences())
    expected = {"actor", "critic", "target_critic", "log_temperature", "auxiliary"}
    assert changed(before, snapshot(agent)) == (expected if loss else expected - {"auxiliary"})


@pytest.mark.parametrize(("encoder", "layers"), [("mlp", 1), ("mlp", 4), ("dense", 4)])
def test_every_encoder_learns(encoder, layers):
    agent = make_agent(encoder=encoder, encoder_layers=layers)
    before = snapshot(agent)
    agent.update(transitions(), sequences())
    after = snapshot(agent)
    encoders = [name for name in before if name.startswith("encoder.")]
    assert len(encoders) == 2 * layers + 4
    assert all(not torch.equal(before[name], after[name]) for name in encoders)


def test_a_shared_encoder_moves_the_policy_with_every_critic_step_and_an_own_one_never():
    observations, moved = transitions().observations, {}
    for kind in ("own", "shared"):
        agent = make_agent(actor_encoder=kind)
        agent.updates = 1  # no step of the actor
        before = agent.act(observations, deterministic=True)
        agent.update(transitions(), sequences())
        moved[kind] = not torch.equal(before, agent.act(observations, deterministic=True))
    assert moved == {"own": False, "shared": True}


def test_sequences_without_an_auxiliary_loss_are_refused():
    with pytest.raises(ValueError, match="without an auxiliary loss"):
        make_agent(None).update(transitions(), sequences())
