import re
import runpy
from pathlib import Path

import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_known_loss_trains_the_encoder_of_another_agent(capsys):
    state = torch.random.get_rng_state()
    runpy.run_path(str(EXAMPLES / "known_loss_in_your_agent.py"), run_name="__main__")
    torch.random.set_rng_state(state)
    losses = [float(value) for value in re.findall(r"auxiliary loss ([\d.]+)", capsys.readouterr().out)]
    assert losses[-1] < 0.5 * losses[0]
