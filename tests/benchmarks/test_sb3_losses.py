import math
from dataclasses import replace

import sb3_losses
import scipy.stats
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
    main()
    assert trained == [(preset("fast", last.env), last.method, last.seed)]
    assert read(path) == runs
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["cheetah-run", "same", "networks", "10", "11", "12", "11.0", "21.0", "5"] in lines
    # Twenty-one elevenths; the interval by Student's t with four degrees of freedom, and with eight over both.
    error = math.sqrt(1 / 3 + (21 / 11) ** 2 / 3) / 11
    one, both = scipy.stats.t(4).ppf(0.975) * error, scipy.stats.t(8).ppf(0.975) * error / math.sqrt(2)
    ratio = 21 / 11
    shown = f"{ratio:.2f} {ratio - one:.2f} to {ratio + one:.2f}"
    assert f"walker-walk stable-baselines3 20 21 22 21.0 {shown} 41.0 5".split() in lines
    assert f"all stable-baselines3 {ratio:.2f} {ratio - both:.2f} to {ratio + both:.2f}".split() in lines


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
