"""A known good auxiliary loss in an agent of your own.

An auxiliary loss needs three things of an agent: an encoder, a slowly following copy of it, and short sequences from
its replay buffer. Here they stand alone, with transitions of Pendulum under random actions in place of an agent.

    python examples/known_loss_in_your_agent.py
"""

from __future__ import annotations

import copy

import gymnasium
import numpy as np
import torch
from torch import nn

from a2ls import AuxiliaryLoss, Sequences, named_loss

BATCH, UPDATES = 128, 300


def main() -> None:
    """Train the encoder with A2-winner alone, and print how the loss falls."""
    torch.manual_seed(0)
    loss = named_loss("a2-winner")
    print(f"A2-winner predicts {loss.paper()}")
    states, actions, rewards = play_randomly(steps=2_000)

    # What your agent has: an encoder that the rest of it looks through.
    encoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 32), nn.LayerNorm(32))

    # What the auxiliary loss adds.
    target_encoder = copy.deepcopy(encoder).requires_grad_(False)
    auxiliary = AuxiliaryLoss(loss, feature_dim=32, action_dim=1)
    optimizer = torch.optim.Adam([*encoder.parameters(), *auxiliary.parameters()], lr=1e-3)

    length = loss.transitions_needed
    for update in range(UPDATES):
        starts = torch.randint(len(actions) - length, (BATCH,))  # one episode here; never cross the end of one
        sequences = Sequences(
            states=[states[starts + i] for i in range(length + 1)],
            actions=[actions[starts + i] for i in range(length)],
            rewards=[rewards[starts + i] for i in range(length)],
        )
        value = auxiliary(sequences, encoder, target_encoder)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        with torch.no_grad():
            for target, source in zip(target_encoder.parameters(), encoder.parameters(), strict=True):
                target.lerp_(source, 0.05)
        if update % 100 == 0 or update == UPDATES - 1:
            print(f"update {update:3d}  auxiliary loss {value.item():.4f}")


def play_randomly(steps: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States (steps + 1, 3), actions (steps, 1) and rewards (steps,) of one long episode of Pendulum."""
    env = gymnasium.make("Pendulum-v1", max_episode_steps=steps)
    env.action_space.seed(0)
    states, actions, rewards = [env.reset(seed=0)[0]], [], []
    for _ in range(steps):
        action = env.action_space.sample()
        state, reward, *_ = env.step(action)
        states.append(state)
        actions.append(action)
        rewards.append(float(reward))
    return torch.from_numpy(np.stack(states)), torch.from_numpy(np.stack(actions)), torch.tensor(rewards)


if __name__ == "__main__":
    main()
