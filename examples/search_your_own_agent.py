"""A search for an auxiliary loss in a learning loop of your own, with nothing but Optuna around it.

It takes three things: a study with `A2LSSampler`, `suggest_loss` in your objective, and an `AuxiliaryLoss` where you
train. Here the learning loop is a toy, so that the search ends in seconds: a small encoder sees the states of Pendulum
under random actions, among dimensions of noise, and learns from the auxiliary loss alone. Its score is how much of the
coming rewards a linear function of its features explains. No agent is trained, every candidate is scored once, on the
episode that it was trained with, and the losses found are good for this toy only. Put the training of your agent in the
place of `train_encoder`, and its return in that of `explained`.

    python examples/search_your_own_agent.py
"""

from __future__ import annotations

import argparse
import copy

import gymnasium
import numpy as np
import optuna
import torch
from torch import nn

from a2ls import AuxiliaryLoss, Loss, Sequences
from a2ls.search import A2LSSampler, SearchSpace, suggest_loss

BATCH, UPDATES, FEATURES, LOOK_AHEAD = 64, 60, 6, 10


def main() -> None:
    """Search, and print the best losses."""
    parser = argparse.ArgumentParser(description="Search an auxiliary loss for a toy learning loop.")
    parser.add_argument("--trials", type=int, default=60)
    trials = parser.parse_args().trials
    torch.set_num_threads(1)  # networks this small do not gain from more
    data = play_randomly(steps=2_000)

    def objective(trial: optuna.Trial) -> float:
        loss = suggest_loss(trial)
        return explained(train_encoder(loss, data), data)

    sampler = A2LSSampler(population_size=12, seed=0, space=SearchSpace(max_horizon=4))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=trials)

    scores = [trial.value for trial in study.trials]
    print(f"without training  score {explained(new_encoder(), data):.3f}")
    for first in range(0, trials, sampler.population_size):
        stage = scores[first : first + sampler.population_size]
        print(f"stage {first // sampler.population_size + 1}  mean {np.mean(stage):.3f}  best {max(stage):.3f}")
    print(f"best loss  {suggest_loss(study.best_trial, sampler.space)}  score {study.best_value:.3f}")


def train_encoder(loss: Loss, data: tuple[torch.Tensor, ...]) -> nn.Module:
    """Your training goes here. This one steps an encoder by the auxiliary loss and by nothing else."""
    states, actions, rewards = data
    encoder = new_encoder()
    target_encoder = copy.deepcopy(encoder).requires_grad_(False)
    auxiliary = AuxiliaryLoss(loss, feature_dim=FEATURES, action_dim=1)
    optimizer = torch.optim.Adam([*encoder.parameters(), *auxiliary.parameters()], lr=3e-3)
    length = auxiliary.loss.transitions_needed
    for _ in range(UPDATES):
        starts = torch.randint(len(actions) - length, (BATCH,))
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
    return encoder


def explained(encoder: nn.Module, data: tuple[torch.Tensor, ...]) -> float:
    """The share of the variance of the coming rewards that a linear function of the features explains."""
    states, _, rewards = data
    coming = rewards.unfold(0, LOOK_AHEAD, 1).mean(dim=1)
    with torch.no_grad():
        features = nn.functional.pad(encoder(states[: len(coming)]), (0, 1), value=1.0)
    half = len(coming) // 2  # fitted on the first half of the episode, scored on the second
    weights = torch.linalg.lstsq(features[:half], coming[:half, None]).solution[:, 0]
    error = (features[half:] @ weights - coming[half:]).square().mean()
    return 1 - (error / coming[half:].var()).item()


def new_encoder() -> nn.Module:
    """The same encoder for every candidate, so that they differ in their loss only."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, FEATURES), nn.LayerNorm(FEATURES))


def play_randomly(steps: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States with five dimensions of noise (steps + 1, 8), actions (steps, 1) and rewards (steps,) of one episode."""
    env = gymnasium.make("Pendulum-v1", max_episode_steps=steps)
    env.action_space.seed(0)
    noise = np.random.default_rng(0).standard_normal((steps + 1, 5), dtype=np.float32)
    states, actions, rewards = [env.reset(seed=0)[0]], [], []
    for _ in range(steps):
        action = env.action_space.sample()
        state, reward, *_ = env.step(action)
        states.append(state)
        actions.append(action)
        rewards.append(float(reward))
    seen = np.concatenate([np.stack(states), noise], axis=1)
    return torch.from_numpy(seen), torch.from_numpy(np.stack(actions)), torch.tensor(rewards)


if __name__ == "__main__":
    main()
