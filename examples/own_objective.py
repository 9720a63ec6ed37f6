"""A training function of your own, searched by `a2ls search` with its workers, races, resuming and reports.

    cd examples
    a2ls search --objective own_objective:train --steps 60 --preset quick
    a2ls search --resume runs/FOLDER
    a2ls report runs/FOLDER

The function is given a loss and says how good it is. Put the training of your agent in its place. Here it is the toy of
search_your_own_agent.py: an encoder that learns from the auxiliary loss alone, scored by what percentage of the coming
rewards a linear function of its features explains.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from search_your_own_agent import BATCH, FEATURES, explained, new_encoder, play_randomly

from a2ls import AuxiliaryLoss, Loss, Sequences

REPORT_EVERY = 20


def train(loss: Loss | None, seed: int, steps: int, report: Callable[[int, float], bool]) -> None:
    """Train with a loss, and report scores on the way.

    Args:
        loss: The auxiliary loss; None for the training without any, which others are compared with.
        seed: Determines all that is random here.
        steps: How long to train: `--steps`.
        report: Takes a step and its score, and returns whether to go on. What is reported is the learning curve; the
            mean of its scores is what losses are compared by.
    """
    data = states, actions, rewards = play_randomly(steps=500)
    encoder = new_encoder()
    target_encoder = copy.deepcopy(encoder).requires_grad_(False)
    auxiliary = None if loss is None else AuxiliaryLoss(loss, feature_dim=FEATURES, action_dim=1)
    parameters = [] if auxiliary is None else [*auxiliary.parameters()]
    optimizer = torch.optim.Adam([*encoder.parameters(), *parameters], lr=3e-3)
    draw = torch.Generator().manual_seed(seed)
    for step in range(1, steps + 1):
        if auxiliary is not None:
            length = auxiliary.loss.transitions_needed
            starts = torch.randint(len(actions) - length, (BATCH,), generator=draw)
            sequences = Sequences(
                states=[states[starts + i] for i in range(length + 1)],
                actions=[actions[starts + i] for i in range(length)],
                rewards=[rewards[starts + i] for i in range(length)],
            )
            optimizer.zero_grad()
            auxiliary(sequences, encoder, target_encoder).backward()
            optimizer.step()
            with torch.no_grad():
                for target, source in zip(target_encoder.parameters(), encoder.parameters(), strict=True):
                    target.lerp_(source, 0.05)
        if step % REPORT_EVERY == 0 and not report(step, 100 * explained(encoder, data)):
            return  # The search has seen enough.
