import json
import subprocess
import sys
from pathlib import Path

import pytest
from convolutions import CONTIGUOUS, LAYOUTS, Layout, PixelSizes
from measuring import Timing
from pixel_speed import Updates, lines, measure_layouts
from reporting import PLAIN, PLAIN_BOUND, WINNER, WINNER_BOUND, Row
from update_speed import parser

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "update_speed.py"


def test_small_images_are_timed_in_a_few_seconds(tmp_path):
    file = tmp_path / "figures.json"
    arguments = "--pixels --sizes 16x4 --image-size 20 --filters 4 --rounds 2 --threads 1"
    layouts = ["--layouts", "contiguous", "channels-last"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments.split(), *layouts, "--json", file],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "images 20x20" in done.stdout
    assert "goal" not in done.stdout
    (figures,) = json.loads(file.read_text())["sizes"]
    contestants = figures["contestants"]
    assert list(contestants) == [PLAIN, WINNER, PLAIN_BOUND, WINNER_BOUND]
    share = contestants[WINNER_BOUND]["median_ms"] / contestants[WINNER]["median_ms"]
    assert contestants[WINNER]["share_of_bound"] == pytest.approx(share)
    assert contestants[WINNER]["convolutions_gflop"] == pytest.approx(contestants[WINNER_BOUND]["gflop"])
    assert list(figures["layouts"]) == ["contiguous (NCHW)", "channels-last (NHWC)"]


@pytest.mark.parametrize(("taken", "verdict"), [(1249, "(reached)"), (1251, "(not reached)")])
def test_the_goal_on_images_holds_for_two_threads(taken, verdict):
    results = {
        name: Row(Timing(taken, taken, taken, runs=3), gflop=1) for name in (PLAIN, WINNER, PLAIN_BOUND, WINNER_BOUND)
    }
    found = Updates(results, {PLAIN: 1, WINNER: 1})
    sizes = PixelSizes(1024, 128)
    assert verdict in lines(sizes, found, threads=2)[-1]
    assert not any("goal" in line for line in lines(sizes, found, threads=1))
    assert not any("goal" in line for line in lines(PixelSizes(1024, 128, filters=16), found, threads=2))


def test_a_layout_that_the_machine_cannot_do_is_left_out(monkeypatch, capsys):
    def refuse(tensor):
        raise RuntimeError("no such thing here\nand more about it")

    monkeypatch.setitem(LAYOUTS, "opaque", Layout("opaque (oneDNN)", refuse))
    small = PixelSizes(16, 4, image_size=20, filters=4)
    assert measure_layouts(small, ["opaque"], rounds=2, seconds=1) == {}
    assert list(measure_layouts(small, ["opaque", "contiguous"], rounds=2, seconds=1)) == [CONTIGUOUS]
    told = capsys.readouterr().err
    assert "opaque (oneDNN)" in told
    assert "no such thing here" in told
    assert "and more about it" not in told


def test_an_image_too_small_for_four_convolutions_is_refused(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["--pixels", "--image-size", "14"])
    assert "14" in capsys.readouterr().err
