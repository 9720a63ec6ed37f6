import re
import runpy
from pathlib import Path

import optuna
import torch

from a2ls import Loss, load_agent

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


def test_sac_in_one_file_learns_with_and_without_the_loss(capsys, monkeypatch):
    small = ["--total-timesteps", "420", "--learning-starts", "150", "--hidden", "32", "--batch-size", "32"]
    monkeypatch.setattr("sys.argv", ["cleanrl_sac.py", *small, "--buffer-size", "300", "--log-every", "60"])
    state = torch.random.get_rng_state()
    runpy.run_path(str(EXAMPLES / "cleanrl_sac.py"), run_name="__main__")
    values = [float(value) for value in re.findall(r"auxiliary ([\d.]+)", capsys.readouterr().out)]
    assert len(values) == 5
    assert values[-1] < 0.5 * values[0]
    monkeypatch.setattr("sys.argv", ["cleanrl_sac.py", *small, "--auxiliary-loss", "none", "--log-every", "420"])
    runpy.run_path(str(EXAMPLES / "cleanrl_sac.py"), run_name="__main__")
    torch.random.set_rng_state(state)
    assert re.search(r"return +-\d+.* auxiliary nan", capsys.readouterr().out)


def test_an_agent_is_trained_kept_and_let_act_elsewhere(tmp_path, capsys, monkeypatch):
    file = tmp_path / "agent.safetensors"
    threads, random_state = torch.get_num_threads(), torch.random.get_rng_state()
    monkeypatch.setattr("sys.argv", ["use_a_trained_agent.py", "--steps", "300", "--out", str(file)])
    runpy.run_path(str(EXAMPLES / "use_a_trained_agent.py"), run_name="__main__")
    torch.set_num_threads(threads)
    assert torch.equal(torch.random.get_rng_state(), random_state)
    printed = capsys.readouterr().out
    agent = load_agent(file)
    assert f"trained for 300 steps, AULC {agent.aulc:.1f}, last score {agent.score:.1f}" in printed
    env = agent.make_env()
    obs, _ = env.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        obs, reward, terminated, truncated, _ = env.step(agent.predict(obs))
        total, ended = total + reward, terminated or truncated
    assert f"gymnasium.make: {total:.1f} " in printed
