"""The random directions of landscapes: filter by filter as large as the weights."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from a2ls.analysis.landscape._landscape import filter_normalised_direction
from helpers.agents import AGENTS, generator, some_agent


@pytest.fixture(params=AGENTS)
def agent(request):
    observation, settings = AGENTS[request.param]
    return some_agent(observation, **settings)


def test_every_filter_has_the_norm_of_its_weights_and_nothing_else_moves(agent):
    networks = nn.ModuleDict({"encoder": agent.encoder, "critic": agent.critic})
    direction = filter_normalised_direction(networks, generator(100))
    named = dict(networks.named_parameters())
    assert [part.shape for part in direction] == [parameter.shape for parameter in named.values()]
    weights = 0
    for (name, parameter), part in zip(named.items(), direction, strict=True):
        if name.endswith(".bias") or name == "encoder.head.1.weight":
            assert not part.any(), name
            continue
        weights += 1
        ours, theirs = (list(tensor.detach().numpy()) for tensor in (part, parameter))
        norms = [[np.linalg.norm(each.ravel()) for each in side] for side in (ours, theirs)]
        np.testing.assert_allclose(*norms, rtol=1e-5, err_msg=name)
        assert np.std(norms[1]) > 0.01 or len(norms[1]) == 1, "filters of different sizes, or the test shows nothing"
        # A direction, not a copy of the weights.
        cosines = [abs(np.vdot(a, b)) / np.vdot(b, b) for a, b in zip(ours, theirs, strict=True)]
        assert np.mean(cosines) < 0.6 or len(cosines) == 1, name
    assert weights >= 3


@pytest.mark.parametrize(
    ("layer", "scaled"),
    [
        (
            nn.Linear(4, 3),
            lambda d, w: np.stack([d[i] / np.linalg.norm(d[i]) * np.linalg.norm(w[i]) for i in range(3)]),
        ),
        (
            nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last),
            lambda d, w: np.stack([d[i] * math.sqrt((w[i] ** 2).sum() / (d[i] ** 2).sum()) for i in range(3)]),
        ),
    ],
    ids=["linear", "convolution"],
)
def test_the_direction_is_a_gaussian_draw_with_each_filter_scaled(layer, scaled):
    drawn = torch.randn(layer.weight.shape, generator=generator(4)).numpy()
    weight, bias = filter_normalised_direction(layer, generator(4))
    np.testing.assert_allclose(weight.numpy(), scaled(drawn, layer.weight.detach().numpy()), rtol=1e-5)
    assert not bias.any()


def test_a_filter_without_weights_stays_without():
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight[0] = 0
    direction = filter_normalised_direction(layer, generator())[0]
    assert not direction[0].any()
    assert direction[1].all()


def test_a_layer_that_is_not_known_is_not_left_out_in_silence():
    with pytest.raises(TypeError, match="Embedding"):
        filter_normalised_direction(nn.Sequential(nn.Linear(2, 2), nn.Embedding(3, 2)), generator())
