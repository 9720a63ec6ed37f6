from dataclasses import replace

import sb3_losses
from sb3_losses import ENVIRONMENTS, METHODS, Run, append, main, read

from a2ls import preset


def test_runs_that_have_a_row_are_left_out_and_the_table_has_their_means(tmp_path, monkeypatch, capsys):
    path = tmp_path / "runs" / "runs.csv"
    runs = [
        Run(env, method, seed, 10.0 * place + seed, f"1.0 {20.0 * place + seed}", 5.0)
        for env in ENVIRONMENTS
        for place, method in enumerate(METHODS)
        for seed in range(3)
    ]
    *earlier, last = runs
    for run in earlier:
        append(path, run)
    assert read(path) == earlier
    trained = []
    monkeypatch.setattr(sb3_losses, "train", lambda *asked: trained.append(asked) or last)
    monkeypatch.setattr("sys.argv", ["sb3_losses.py", str(path)])
    monkeypatch.setenv("COLUMNS", "120")
    main()
    assert trained == [(preset("fast", last.env), last.method, last.seed)]
    assert read(path) == runs
    row = next(
        line.split() for line in capsys.readouterr().out.splitlines() if "cheetah-run" in line and "same" in line
    )
    assert row == [
        "cheetah-run",
        "same",
        "networks",
        "3",
        "11.0",
        "10.0",
        "to",
        "12.0",
        "21.0",
        "20.0",
        "to",
        "22.0",
        "5",
    ]


def test_a_run_of_every_method_evaluates_where_the_preset_says():
    short = preset("fast", "Pendulum-v1")
    environment = replace(short.environment, action_repeat=4)
    config = replace(
        short, environment=environment, steps=480, evaluations=2, evaluation_episodes=1, learning_starts=90
    )
    for method in METHODS:
        run = sb3_losses.train(config, method, seed=0)
        scores = [float(score) for score in run.scores.split()]
        assert len(scores) == 2
        assert abs(run.aulc - sum(scores) / 2) < 0.1
