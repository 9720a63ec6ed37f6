import re
import runpy
from pathlib import Path

import optuna
import torch

from a2ls import Loss

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_known_loss_trains_the_encoder_of_another_agent(capsys):
    state = torch.random.get_rng_state()
    runpy.run_path(str(EXAMPLES / "known_loss_in_your_agent.py"), run_name="__main__")
    torch.random.set_rng_state(state)
    losses = [float(value) for value in re.findall(r"auxiliary loss ([\d.]+)", capsys.readouterr().out)]
    assert losses[-1] < 0.5 * losses[0]


def test_a_search_in_a_learning_loop_of_ones_own_finds_a_loss_that_helps(capsys, monkeypatch):
    state, verbosity = torch.random.get_rng_state(), optuna.logging.get_verbosity()
    monkeypatch.setattr("sys.argv", ["search_your_own_agent.py", "--trials", "14"])
    runpy.run_path(str(EXAMPLES / "search_your_own_agent.py"), run_name="__main__")
    torch.random.set_rng_state(state)
    optuna.logging.set_verbosity(verbosity)
    printed = capsys.readouterr().out
    untrained = float(re.search(r"without training  score ([\d.]+)", printed)[1])
    loss, score = re.search(r"best loss  (.+)  score ([\d.]+)", printed).groups()
    assert Loss.parse(loss).is_valid(max_horizon=4)
    assert float(score) > untrained + 0.2
    assert re.findall(r"stage (\d)", printed) == ["1", "2"]
