"""Train an agent, keep it in a file, and let it act in an environment that knows nothing of this package.

    python examples/use_a_trained_agent.py

`a2ls train` writes the same kind of file into the folder of a run: `a2ls.load_agent("runs/FOLDER")`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import gymnasium
import torch

import a2ls


def main() -> None:
    """Train, save, load and play."""
    parser = argparse.ArgumentParser(description="Train an agent for Pendulum and let it act.")
    parser.add_argument("--steps", type=int, default=8_000, help="environment steps of the training")
    parser.add_argument("--out", type=Path, default=Path("pendulum.safetensors"), help="the file of the agent")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # networks this small do not gain from more

    config = a2ls.preset("fast", "Pendulum-v1", steps=arguments.steps)
    config = replace(
        config,
        evaluations=2,
        batch_size=128,
        learning_starts=arguments.steps // 8,
    )
    curve, agent = a2ls.train(config, a2ls.named_loss("a2-winner"), seed=0, return_agent=True)
    print(f"trained for {agent.step} steps, AULC {curve.aulc:.1f}, last score {agent.score:.1f}")
    agent.save(arguments.out)

    # Elsewhere, perhaps on another day:
    agent = a2ls.load_agent(arguments.out)
    env = gymnasium.make("Pendulum-v1")
    returns = [play(agent, env, seed) for seed in range(5)]
    print(f"returns in gymnasium.make: {' '.join(f'{each:.1f}' for each in returns)}")


def play(agent: a2ls.TrainedPolicy, env: gymnasium.Env, seed: int) -> float:
    """The return of one episode."""
    obs, _ = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        obs, reward, terminated, truncated, _ = env.step(agent.predict(obs))
        total, ended = total + float(reward), terminated or truncated
    return total


if __name__ == "__main__":
    main()
