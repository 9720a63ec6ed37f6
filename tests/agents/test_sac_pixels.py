"""SAC on images: what each network sees and how often, what trains it, and the formulas of CURL and DrQ."""

import copy
import functools
import io
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from a2ls._errors import BadInput
from a2ls.agents import SAC, SACConfig, Transitions
from a2ls.auxiliary import Sequences
from a2ls.space import Loss, named_loss

CHANNELS, FRAME, SIZE, ACTION, BATCH, SEQUENCES = 9, 14, 12, 2, 4, 3
SMALL = {
    "encoder": "conv",
    "encoder_layers": 2,
    "filters": 4,
    "augmentation": "crop",
    "image_size": SIZE,
    "actor_encoder": "shared",
    "hidden": 8,
    "predictor_hidden": 8,
    "learning_rate": 1e-2,
    "encoder_learning_rate": 2e-2,
}
WINNER, CURL = named_loss("a2-winner"), named_loss("curl")
LOSSES = [
    None,
    WINNER,
    CURL,
    named_loss("forward-dynamics"),
    named_loss("reward-prediction"),
    Loss.parse("s0 s1 s2 -> a0 r1"),
    Loss.parse("s0 a0 s2 -> s1 r1 s3 s4"),
]


def make_agent(loss=WINNER, seed=0, frame=FRAME, **settings):
    return SAC((CHANNELS, frame, frame), ACTION, SACConfig(**{**SMALL, **settings}), loss, seed=seed)


def images(count, frame=FRAME, seed=0):
    """Noise, so that no two windows look alike."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, CHANNELS, frame, frame), dtype=np.uint8)
    return torch.from_numpy(pixels)


def transitions(seed=0, frame=FRAME, stored=lambda batch: batch):
    generator = torch.Generator().manual_seed(seed)
    return Transitions(
        stored(images(BATCH, frame, seed=[1, seed])),
        torch.rand(BATCH, ACTION, generator=generator) * 2 - 1,
        torch.randn(BATCH, generator=generator),
        stored(images(BATCH, frame, seed=[2, seed])),
        (torch.rand(BATCH, generator=generator) > 0.3).float(),
    )


def sequences(loss, seed=0, frame=FRAME, stored=lambda batch: batch):
    """Just the elements that the loss selects, or None without a loss."""
    if loss is None:
        return None
    generator = torch.Generator().manual_seed(1000 + seed)
    steps = range(loss.horizon + 1)
    selected = [a or b for a, b in zip(loss.source, loss.target, strict=True)]
    return Sequences(
        {i: stored(images(SEQUENCES, frame, seed=[3 + i, seed])) for i in steps if selected[3 * i]},
        {i: torch.randn(SEQUENCES, ACTION, generator=generator) for i in steps if selected[3 * i + 1]},
        {i: torch.randn(SEQUENCES, generator=generator) for i in steps if selected[3 * i + 2]},
    )


def snapshot(agent):
    return {name: p.detach().clone() for name, p in agent.named_parameters()}


def changed(before, after, prefix=""):
    return {name for name in before if name.startswith(prefix) and not torch.equal(before[name], after[name])}


def names(agent, prefix):
    return {name for name, _ in agent.named_parameters() if name.startswith(prefix)}


class Watched:
    """What the bodies of an agent's encoders are given, call by call."""

    def __init__(self, agent):
        self.agent = agent
        self.bodies = {"online": agent.encoder.body, "target": agent.target_encoder.body}
        if agent.actor_encoder.body is not agent.encoder.body:
            self.bodies["actor"] = agent.actor_encoder.body
        for name, body in self.bodies.items():
            body.forward = functools.partial(self._note, name, body.forward)
        self.forget()

    def forget(self):
        self.calls = []

    def _note(self, name, forward, inputs):
        output = forward(inputs)
        self.calls.append((name, inputs.detach().clone(), snapshot(self.agent), output.requires_grad))
        return output

    def seen(self, name):
        return [inputs for other, inputs, *_ in self.calls if other == name]

    def counts(self, name):
        return [len(inputs) for inputs in self.seen(name)]

    def weights(self, name, call):
        return [weights for other, _, weights, _ in self.calls if other == name][call]

    def trained(self, name):
        return [trained for other, *_, trained in self.calls if other == name]


def gradients_of(agent):
    """Fills with all gradients that each parameter gets, in turn."""
    kept = {name: [] for name, p in agent.named_parameters() if p.requires_grad}
    names = {parameter: name for name, parameter in agent.named_parameters()}
    optimizers = (agent.critic_optimizer, agent.actor_optimizer, agent.temperature_optimizer)
    for optimizer in (*optimizers, *agent.auxiliary_optimizers):

        def step(gradients, optimizer=optimizer, take=optimizer.step):
            for parameter, gradient in zip(optimizer.parameters, gradients, strict=True):
                kept[names[parameter]].append(gradient.clone())
            take(gradients)

        optimizer.step = step
    return kept


def place_of(view, image):
    """Where the window was cut; fails if it is none of this image."""
    places = [
        (top, left)
        for top in range(FRAME - SIZE + 1)
        for left in range(FRAME - SIZE + 1)
        if np.array_equal(view, image[:, top : top + SIZE, left : left + SIZE])
    ]
    assert len(places) == 1
    return places[0]


def places_of(views, originals):
    return [place_of(view, image) for view, image in zip(views, originals, strict=True)]


# What each network sees.


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


# What trains what.


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
            results += agent.update(transitions(i), sequences(loss, i)).values()
            results.append(agent.act(images(2), deterministic=False))
        return [*results, *snapshot(agent).values(), agent.generator.get_state()]

    for i in range(3):
        agent.update(transitions(i), sequences(loss, i))
    other.load_state_dict(kept(agent.state_dict()))
    assert shares_convolutions(other) == (actor_encoder == "shared")
    assert all(torch.equal(a, b) for a, b in zip(go_on(agent), go_on(other), strict=True))
    assert shares_convolutions(other) == (actor_encoder == "shared")


# Formulas.


def doubles(weights):
    """The weights of the moment as leaves of a float64 computation."""
    return {name: value.double().requires_grad_() for name, value in weights.items()}


def rectified(x):
    """Without a gradient at zero, where a unit is whose input is dead and whose bias has not moved."""
    return torch.where(x > 0, x, 0.0)


def body(p, name, views):
    x = torch.as_tensor(views).double() / 255
    for layer, stride in ((0, 2), (1, 1)):
        x = rectified(F.conv2d(x, p[f"{name}.layers.{layer}.weight"], p[f"{name}.layers.{layer}.bias"], stride))
    return x.permute(0, 2, 3, 1).reshape(len(x), -1)


def head(p, name, x):
    x = x @ p[f"{name}.linear.weight"].T + p[f"{name}.linear.bias"]
    x = (x - x.mean(1, keepdim=True)) / (x.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return x * p[f"{name}.norm.weight"] + p[f"{name}.norm.bias"]


def encoded(p, name, views):
    return head(p, f"{name}.head", body(p, f"{name}.body", views))


def mlp(p, name, layers, x):
    for layer in layers:
        if layer != layers[0]:
            x = rectified(x)
        x = x @ p[f"{name}.{layer}.weight"].T + p[f"{name}.{layer}.bias"]
    return x


def least_value(p, name, features, actions):
    return torch.minimum(*(value(p, name, i, features, actions) for i in range(2)))


def value(p, name, i, features, actions):
    x = torch.cat([features, actions.double()], 1)
    for layer in ("first", "second", "last"):
        if layer != "first":
            x = rectified(x)
        x = x @ p[f"{name}.{layer}.weight"][i] + p[f"{name}.{layer}.bias"][i]
    return x[:, 0]


def policy(p, views, noise):
    features = head(p, "actor_encoder.head", body(p, "encoder.body", views).detach())
    mean, log_std = mlp(p, "actor.layers", (0, 1, 2), features).chunk(2, dim=1)
    std = (-10 + 6 * (log_std.tanh() + 1)).exp()
    action = (mean + std * noise.double()).tanh()
    return action, TransformedDistribution(Normal(mean, std), TanhTransform(cache_size=0)).log_prob(action).sum(1)


def assert_gradients_close(gradients, loss, p, compared):
    expected = torch.autograd.grad(loss, [p[name] for name in compared], retain_graph=True)
    for name, wanted in zip(compared, expected, strict=True):
        scale = wanted.abs().max().item()
        assert scale > 0, name
        given = gradients[name][-1].double()
        torch.testing.assert_close(given, wanted, rtol=1e-3, atol=1e-4 * scale, msg=f"gradient of {name}")


def test_curl_is_curl():
    agent = make_agent(CURL)
    for i in range(2):
        agent.update(transitions(i), sequences(CURL, i))
    watched, gradients, given = Watched(agent), gradients_of(agent), sequences(CURL, 2)
    reported = agent.update(transitions(2), given)["auxiliary_loss"].item()
    p = doubles(watched.weights("online", -1))
    queries, keys = (watched.seen(name)[-1] for name in ("online", "target"))
    assert places_of(queries, given.states[0]) != places_of(keys, given.states[0])

    predicted = mlp(p, "auxiliary.predictor.layers", (0, 1), encoded(p, "encoder", queries))
    with torch.no_grad():
        momentum = encoded(p, "target_encoder", keys)
    logits = predicted @ p["auxiliary.operator.weight"] @ momentum.T
    logits = logits - logits.max(dim=1, keepdim=True).values
    labels = np.arange(SEQUENCES)
    loss = (logits.exp().sum(dim=1).log() - logits[labels, labels]).mean()

    assert reported == pytest.approx(loss.item(), rel=1e-4)
    assert loss.item() > 1e-3
    compared = sorted(names(agent, "encoder.") | names(agent, "auxiliary."))
    assert "auxiliary.operator.weight" in compared
    assert_gradients_close(gradients, loss, p, compared)
    assert not names(agent, "target_") & set(gradients)


def random_views(batch, augmentation, generator):
    """Windows of images (B, channels, n, n): in the image, or in one whose edge is repeated four times."""
    pixels = batch.numpy()
    if augmentation == "shift":
        pixels = np.pad(pixels, [(0, 0), (0, 0), (4, 4), (4, 4)], mode="edge")
    size = SIZE if augmentation == "crop" else FRAME
    tops, lefts = (
        torch.randint(pixels.shape[2] - size + 1, (len(pixels),), generator=generator).tolist() for _ in range(2)
    )
    return np.stack(
        [image[:, top : top + size, left : left + size] for image, top, left in zip(pixels, tops, lefts, strict=True)]
    )


@pytest.mark.parametrize(("augmentation", "count"), [("shift", 2), ("shift", 1), ("crop", 1), ("crop", 3)])
def test_values_are_averaged_over_the_views_as_in_drq(augmentation, count):
    agent = make_agent(None, augmentation=augmentation, augmented_views=count)
    for i in range(2):
        agent.update(transitions(i))
    generator = torch.Generator()
    generator.set_state(agent.generator.get_state())
    watched, gradients, batch = Watched(agent), gradients_of(agent), transitions(2)
    metrics = agent.update(batch)

    p = doubles(watched.weights("online", 0))
    alpha = p["log_temperature"].exp().item()
    views = [
        [random_views(block, augmentation, generator) for block in (batch.observations, batch.next_observations)]
        for _ in range(count)
    ]
    noises = torch.randn(count * BATCH, ACTION, generator=generator).chunk(count)
    following = []
    for (_, view), noise in zip(views, noises, strict=True):
        actions, log_probability = policy(p, view, noise)
        features = encoded(p, "target_encoder", view)
        following.append(least_value(p, "target_critic", features, actions) - alpha * log_probability)
    bootstrap = sum(following).detach() / count
    target = batch.rewards + 0.99 * batch.continues * bootstrap
    loss = 0
    for observed, _ in views:
        features = encoded(p, "encoder", observed)
        errors = [(value(p, "critic", i, features, batch.actions) - target).square().mean() for i in range(2)]
        loss = loss + (errors[0] + errors[1]) / count
    assert metrics["critic_loss"].item() == pytest.approx(loss.item(), rel=1e-4)
    assert_gradients_close(gradients, loss, p, sorted(names(agent, "encoder.") | names(agent, "critic.")))
    if count > 1:
        assert (following[0] - following[1]).abs().max() > 1e-4

    # The actor looks at the first view, with the critic of this update.
    p = doubles(watched.weights("online", 2))
    first = views[0][0]
    assert np.array_equal(watched.seen("online")[2], first)
    actions, log_probability = policy(p, first, torch.randn(BATCH, ACTION, generator=generator))
    values = least_value(p, "critic", encoded(p, "encoder", first).detach(), actions)
    actor_loss = (alpha * log_probability - values).mean()
    assert metrics["actor_loss"].item() == pytest.approx(actor_loss.item(), rel=1e-4)
    assert_gradients_close(gradients, actor_loss, p, sorted(names(agent, "actor")))
    assert torch.equal(generator.get_state(), agent.generator.get_state())


# Acting.


def active(agent):
    """Weights with which every pixel that the convolutions see matters."""
    torch.manual_seed(0)
    for parameter in agent.encoder.body.parameters():
        nn.init.uniform_(parameter, 0.1, 1.0)
    return agent


@pytest.mark.parametrize(("frame", "size", "margin"), [(17, 13, 2), (16, 13, 1)])
def test_actions_depend_on_the_pixels_of_the_middle_alone(frame, size, margin):
    agent = active(make_agent(None, frame=frame, image_size=size))
    image = images(1, frame)[0]
    each = image.repeat(frame * frame, 1, 1, 1)
    for i in range(frame * frame):
        each[i, :, i // frame, i % frame] ^= 255
    actions = agent.act(torch.cat([image[None], each]), deterministic=True)
    moved = ((actions[1:] - actions[0]).abs().amax(dim=1) > 1e-6).view(frame, frame)
    expected = torch.zeros(frame, frame, dtype=torch.bool)
    expected[margin : margin + size, margin : margin + size] = True
    assert torch.equal(moved, expected)


@pytest.mark.parametrize("augmentation", ["crop", "shift", "none"])
def test_deterministic_actions_are_the_same_every_time(augmentation):
    agent, batch = make_agent(augmentation=augmentation), images(3)
    agent.update(transitions(), sequences(WINNER))
    state = agent.generator.get_state()
    first = agent.act(batch, deterministic=True)
    assert torch.equal(first, agent.act(batch, deterministic=True))
    assert torch.equal(state, agent.generator.get_state())
    assert first.shape == (3, ACTION)
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, agent.act(batch, deterministic=False))


@pytest.mark.parametrize(("augmentation", "frame"), [("shift", 12), ("none", 12), ("crop", 14)])
def test_acting_is_the_policy_on_the_plain_view(augmentation, frame):
    agent, batch = make_agent(None, frame=frame, augmentation=augmentation), images(3, frame)
    agent.update(transitions(frame=frame))
    p = doubles(snapshot(agent))
    middle = batch[:, :, 1:13, 1:13] if augmentation == "crop" else batch
    features = head(p, "actor_encoder.head", body(p, "encoder.body", middle))
    mean = mlp(p, "actor.layers", (0, 1, 2), features)[:, :ACTION].tanh()
    torch.testing.assert_close(agent.act(batch, deterministic=True).double(), mean, atol=1e-5, rtol=0)


def test_a_translated_image_is_acted_on_in_the_middle_of_black():
    agent, batch = make_agent(None, frame=8, augmentation="translate"), images(3, 8)
    agent.update(transitions(frame=8))
    black = np.pad(batch, [(0, 0), (0, 0), (2, 2), (2, 2)])
    p = doubles(snapshot(agent))
    mean = mlp(p, "actor.layers", (0, 1, 2), head(p, "actor_encoder.head", body(p, "encoder.body", black)))
    acted = agent.act(batch, deterministic=True).double()
    torch.testing.assert_close(acted, mean[:, :ACTION].tanh(), atol=1e-5, rtol=0)


# The same again.


def updated(loss=WINNER, seed=0, count=3, stored=lambda batch: batch, **settings):
    agent = make_agent(loss, seed, **settings)
    metrics = [agent.update(transitions(i, stored=stored), sequences(loss, i, stored=stored)) for i in range(count)]
    assert all(value.isfinite().all() for each in metrics for value in each.values())
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
    assert all(value.isfinite().all() for value in metrics.values())
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
