"""Small agents on images, and watching what they are given and how they learn."""

import functools

import numpy as np
import torch

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
