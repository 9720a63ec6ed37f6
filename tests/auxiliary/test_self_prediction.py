"""SPR's loss against loops over its definition."""

import pytest
import torch
import torch.nn.functional as F

from a2ls.auxiliary import SelfPrediction, Sequences, make_encoder
from a2ls.space import named_loss

BATCH, ACTIONS, STEPS = 3, 5, 2


def made(kind, shape):
    torch.manual_seed(0)
    encoder, target = (make_encoder(kind, shape).double() for _ in range(2))
    latent_dim = encoder.body(torch.zeros(1, *shape, dtype=torch.float64)).shape[1]
    loss = SelfPrediction(named_loss(f"spr-{STEPS}"), encoder, latent_dim, ACTIONS).double()
    states = {i: torch.randint(0, 255, (BATCH, *shape)).double() for i in range(STEPS + 1)}
    sequences = Sequences(states, {i: torch.randint(0, ACTIONS, (BATCH,)) for i in range(STEPS)}, {})
    return loss, encoder, target, sequences


def one_hot(action):
    vector = torch.zeros(ACTIONS, dtype=torch.float64)
    vector[action] = 1.0
    return vector


def after_vector(model, latent, action):
    return model.layers(torch.cat([latent, one_hot(action)]))


def after_maps(model, latents, actions):
    """All samples at once, since the batch is normalised; channel by channel, the action as constant planes."""
    first, norm, second = model.layers[0], model.layers[1], model.layers[3]
    maps = []
    for latent, action in zip(latents, actions, strict=True):
        planes = one_hot(action)[:, None, None] * torch.ones(3, 3, dtype=torch.float64)
        maps.append(torch.cat([latent.reshape(3, 3, 64).permute(2, 0, 1), planes]))
    x = F.conv2d(torch.stack(maps), first.weight, first.bias, padding=1)
    mean, variance = x.mean(dim=(0, 2, 3), keepdim=True), x.var(dim=(0, 2, 3), keepdim=True, correction=0)
    x = (x - mean) / (variance + norm.eps).sqrt() * norm.weight[:, None, None] + norm.bias[:, None, None]
    x = F.conv2d(x.clamp(min=0), second.weight, second.bias, padding=1).clamp(min=0)
    return [sample.permute(1, 2, 0).reshape(-1) for sample in x]


@pytest.mark.parametrize(("kind", "shape"), [("dense", (6,)), ("atari", (4, 84, 84))])
def test_latent_states_are_predicted_step_by_step_and_compared_by_their_cosine(kind, shape):
    loss, encoder, target, sequences = made(kind, shape)
    found = loss(sequences, encoder, target, lambda obs: obs)
    latents = list(encoder.body(sequences.states[0]))
    expected = torch.zeros((), dtype=torch.float64)
    for step in range(STEPS):
        actions = sequences.actions[step].tolist()
        if kind == "dense":
            latents = [after_vector(loss.transition, *each) for each in zip(latents, actions, strict=True)]
        else:
            latents = after_maps(loss.transition, latents, actions)
        wanted = target(sequences.states[step + 1]).detach()
        for sample in range(BATCH):
            predicted = loss.predictor(encoder.head(latents[sample][None]))[0]
            cosine = predicted @ wanted[sample] / (predicted.norm() * wanted[sample].norm())
            expected = expected + (1 - cosine) / BATCH
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)
    networks = [encoder, loss]
    for mine, theirs in zip(gradients(found, networks), gradients(expected, networks), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-12)
    assert all(parameter.grad is None for parameter in target.parameters())


def gradients(loss, networks):
    parameters = [parameter for network in networks for parameter in network.parameters()]
    return torch.autograd.grad(loss, parameters, retain_graph=True)


def test_every_state_is_seen_through_the_view():
    loss, encoder, target, sequences = made("dense", (6,))
    seen = []
    loss(sequences, encoder, target, lambda obs: seen.append(len(obs)) or obs)
    assert seen == [BATCH, STEPS * BATCH]
