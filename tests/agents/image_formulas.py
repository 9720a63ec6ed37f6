"""The networks of an agent on images, written out in float64."""

import torch
import torch.nn.functional as F
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


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
