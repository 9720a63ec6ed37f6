import json
import subprocess
import sys
import time
from pathlib import Path

import operators
import pytest
from atari_speed import CURL, GOAL_SHARE, JUDGING, Found, atari_sizes, lines, products_share, run_hours
from discrete_speed import BASELINE, PLAIN, WINNER, by_pytorch
from measuring import Laps, Timing
from operators import group_shares
from rainbow_contestants import ACTING, ADDING, PARTS, PLAYING
from reporting import Row, bound_of
from update_speed import main

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "update_speed.py"


def figures_of(tmp_path, arguments):
    file = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments.split(), "--rounds", "2", "--json", file],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    (figures,) = json.loads(file.read_text())["sizes"]
    return done.stdout, figures


def test_small_updates_in_an_atari_game_are_timed_in_a_few_seconds(tmp_path):
    printed, figures = figures_of(tmp_path, "--atari --sizes 16x4 --image-size 25")
    assert "images 4x25x25" in printed
    assert "goal" not in printed
    contestants = figures["contestants"]
    agents = {PLAIN, WINNER, CURL}
    assert {*agents, *map(bound_of, agents), BASELINE} <= set(contestants)
    share = contestants[bound_of(WINNER)]["median_ms"] / contestants[WINNER]["median_ms"]
    assert contestants[WINNER]["share_of_bound"] == pytest.approx(share)
    assert 0 < contestants[WINNER]["convolutions_gflop"] < contestants[WINNER]["gflop"]
    assert contestants[BASELINE]["ratio_to_stable_baselines3"] == 1
    assert set(figures["parts"]) == set(figures["profiled_shares"]) == set(figures["hours"]) == agents
    assert set(figures["parts"][WINNER]) == set(PARTS)
    for shares in figures["profiled_shares"].values():
        assert sum(shares.values()) == pytest.approx(1)
        assert 0 < products_share(shares) < 1
    assert set(figures["agent_step"]) == {ACTING, PLAYING, ADDING, JUDGING}


def test_small_updates_with_discrete_actions_are_timed_in_a_few_seconds(tmp_path):
    printed, figures = figures_of(tmp_path, "--discrete --sizes 16x4")
    assert "4 numbers" in printed
    agents = {PLAIN, WINNER}
    expected = {*agents, *map(by_pytorch, agents), *map(bound_of, agents), BASELINE}
    assert set(figures["contestants"]) == expected


def constant(milliseconds):
    return Timing(milliseconds, milliseconds, milliseconds, runs=3)


def found(share):
    names = (PLAIN, WINNER, CURL)
    rows = {name: Row(constant(100), gflop=1) for name in names}
    rows |= {bound_of(name): Row(constant(100 * share), gflop=1) for name in names}
    every = {operators.CONVOLUTIONS: share / 2, operators.PRODUCTS: share / 2, operators.OTHERS: 1 - share}
    return Found(rows, dict.fromkeys(names, 1.0), {name: {} for name in names}, dict.fromkeys(names, every), {}, {})


@pytest.mark.parametrize(("share", "verdict"), [(GOAL_SHARE + 0.01, "(reached)"), (GOAL_SHARE - 0.01, "(not reached)")])
def test_the_goal_holds_for_the_preset_and_one_thread(share, verdict):
    sizes = atari_sizes(256, 32, 84)
    goals = [line for line in lines(sizes, found(share), threads=1) if "goal" in line]
    assert len(goals) == 6
    assert all(verdict in line for line in goals)
    for other, threads in ((sizes, 2), (atari_sizes(256, 32, 42), 1), (atari_sizes(128, 32, 84), 1)):
        assert not any("goal" in line for line in lines(other, found(share), threads))


def test_the_hours_of_a_run_are_those_of_its_steps_and_updates():
    step = {ACTING: constant(1), PLAYING: constant(2), ADDING: constant(3), JUDGING: constant(4)}
    hours = run_hours(constant(36), step)
    assert hours["updates"] == pytest.approx((100_000 - 1_600) * 36 / 1000 / 3600)
    assert hours["environment"] == pytest.approx(100_000 * 2 / 1000 / 3600)
    # Five evaluations of ten games, each of a thousand agent steps.
    assert hours["evaluations"] == pytest.approx(50_000 * (2 + 4) / 1000 / 3600)
    assert hours["all"] == pytest.approx(sum(hours.values()) / 2)


def test_laps_add_up_what_belongs_to_a_part():
    laps = Laps()
    for _ in range(5):
        laps.begin()
        time.sleep(0.002)
        laps.take("a")
        laps.take("b")
        time.sleep(0.002)
        laps.take("a")
    timings = laps.timings()
    assert timings["a"].median >= 4
    assert timings["b"].median < 2
    assert timings["a"].runs == 3


def test_time_outside_of_operators_is_python_s():
    shares = group_shares(lambda: time.sleep(0.01), runs=3)
    assert shares[operators.OUTSIDE] > 0.9
    assert sum(shares.values()) == pytest.approx(1)


def test_a_screen_too_small_for_two_convolutions_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["update_speed.py", "--atari", "--image-size", "24"])
    with pytest.raises(SystemExit):
        main()
    assert "24" in capsys.readouterr().err
