"""A search for an auxiliary loss for SAC on Cheetah-Run, with simulated trainings in place of real ones.

A real training takes minutes. Here a model that was fitted to hundreds of them, and comes with `a2ls`, says what would
come of each: 100 trials take a moment. Put the training of your agent in the place of `world.curve`.
"""

from pathlib import Path

import numpy as np
import optuna
import optunahub

from a2ls.simulation import default_records
from a2ls.simulation import WorldModel


STAGE, STAGES = 20, 5

hub = optunahub.load_local_module("samplers/a2ls", registry_root=str(Path(__file__).parents[2]))
world = WorldModel.fit(default_records(), ["cheetah-run"]).sample(np.random.default_rng(0))


def objective(trial: optuna.Trial) -> float:
    """The mean score of an agent while it learns with the loss of this trial."""
    loss = hub.suggest_loss(trial)
    return world.curve(loss, "cheetah-run", seed=trial.number).aulc


optuna.logging.set_verbosity(optuna.logging.WARNING)
sampler = hub.A2LSSampler(population_size=STAGE, seed=0)
study = optuna.create_study(direction="maximize", sampler=sampler)
study.optimize(objective, n_trials=STAGE * STAGES)

plain = [world.curve(None, "cheetah-run", seed).aulc for seed in range(STAGE)]
print(f"without a loss  {np.mean(plain):.0f}")
scores = np.array([trial.value for trial in study.trials], dtype=float).reshape(STAGES, STAGE)
for number, stage in enumerate(scores, start=1):
    print(f"stage {number}  mean {stage.mean():.0f}  best {stage.max():.0f}")
print("best loss ", hub.suggest_loss(study.best_trial))
