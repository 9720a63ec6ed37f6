"""Updates on images against the formulas of CURL and DrQ, written out."""

import numpy as np
import pytest
import torch
from image_formulas import doubles, encoded, least_value, mlp, policy, value
from pixel_agents import (
    ACTION,
    BATCH,
    CURL,
    FRAME,
    SEQUENCES,
    SIZE,
    Watched,
    gradients_of,
    make_agent,
    names,
    places_of,
    sequences,
    transitions,
)


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
    reported = agent.update(transitions(2), given)["auxiliary_loss"]().item()
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
    assert metrics["critic_loss"]().item() == pytest.approx(loss.item(), rel=1e-4)
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
    assert metrics["actor_loss"]().item() == pytest.approx(actor_loss.item(), rel=1e-4)
    assert_gradients_close(gradients, actor_loss, p, sorted(names(agent, "actor")))
    assert torch.equal(generator.get_state(), agent.generator.get_state())
