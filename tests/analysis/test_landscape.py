"""Loss landscapes: directions, grids, what is read from a run, and the pictures."""

import dataclasses
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from a2ls._errors import BadInput
from a2ls.agents import SAC, SACConfig, Transitions
from a2ls.analysis import _landscape
from a2ls.analysis._landscape import (
    Landscape,
    LandscapeSettings,
    critic_batch,
    critic_landscape,
    critic_loss,
    filter_normalised_direction,
    losses_around,
    read_trained_agent,
)
from a2ls.analysis._landscape_figures import LossScale, landscape_caption, landscape_figure, landscape_page
from a2ls.space import named_loss
from a2ls.training import RunFolder, Training, TrainJob, run_in_folder
from tiny_pendulum import PENDULUM
from tiny_pixels import STEERED

WINNER = named_loss("a2-winner")
PIXELS = dataclasses.replace(STEERED, evaluations=1)
SMALL = LandscapeSettings(resolution=5, batch_size=16, batches=2)


def trained_folder(path, config, loss=WINNER):
    folder = RunFolder.create(path, TrainJob(config, loss, 3))
    run_in_folder(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run on vectors and one on images, each trained once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(Path(__file__).parents[1] / "envs"), *sys.path])
        base = tmp_path_factory.mktemp("runs")
        return {
            "vector": trained_folder(base / "vector", PENDULUM),
            "pixels": trained_folder(base / "pixels", PIXELS),
        }


@pytest.fixture(params=["vector", "pixels"])
def folder(request, folders):
    return folders[request.param]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def some_agent(observation, seed=0, loss=None, **settings):
    agent = SAC(observation, 2, SACConfig(**{"hidden": 6, "predictor_hidden": 6, **settings}), loss, seed=seed)
    # After the initialisation filters are of one size, biases zero, and target networks the same as the others.
    noise = generator(seed)
    with torch.no_grad():
        for parameter in agent.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=noise), alpha=0.3)
    return agent


CONV = {"encoder": "conv", "encoder_layers": 2, "filters": 3, "image_size": 12}
AGENTS = {
    "dense": ((5,), {}),
    "mlp": ((5,), {"encoder": "mlp", "encoder_layers": 2}),
    "identity": ((5,), {"encoder": "identity"}),
    "scale": ((5,), {"augmentation": "scale"}),
    "conv": ((9, 12, 12), CONV),
    "crop": ((9, 14, 14), {**CONV, "augmentation": "crop", "actor_encoder": "shared"}),
    "drq": ((9, 12, 12), {**CONV, "augmentation": "shift", "actor_encoder": "shared", "augmented_views": 2}),
}


@pytest.fixture(params=AGENTS)
def agent(request):
    observation, settings = AGENTS[request.param]
    return some_agent(observation, **settings)


def filters(name, weight):
    """The filters of a weight one by one, in numpy."""
    if name.startswith("critic."):
        return [weight[twin, :, unit] for twin in range(2) for unit in range(weight.shape[2])]
    return list(weight)


def test_every_filter_has_the_norm_of_its_weights_and_nothing_else_moves(agent):
    networks = nn.ModuleDict({"encoder": agent.encoder, "critic": agent.critic})
    direction = filter_normalised_direction(networks, generator(100))
    named = dict(networks.named_parameters())
    assert [part.shape for part in direction] == [parameter.shape for parameter in named.values()]
    weights = 0
    for (name, parameter), part in zip(named.items(), direction, strict=True):
        if name.endswith(".bias") or ".norm." in name:
            assert not part.any(), name
            continue
        weights += 1
        ours, theirs = (filters(name, tensor.detach().numpy()) for tensor in (part, parameter))
        norms = [[np.linalg.norm(each.ravel()) for each in side] for side in (ours, theirs)]
        np.testing.assert_allclose(*norms, rtol=1e-5, err_msg=name)
        assert np.std(norms[1]) > 0.01 or len(norms[1]) == 1, "filters of different sizes, or the test shows nothing"
        # A direction, not a copy of the weights.
        cosines = [abs(np.vdot(a, b)) / np.vdot(b, b) for a, b in zip(ours, theirs, strict=True)]
        assert np.mean(cosines) < 0.6, name
    assert weights >= 3


@pytest.mark.parametrize(
    ("layer", "scaled"),
    [
        (
            nn.Linear(4, 3),
            lambda d, w: np.stack([d[i] / np.linalg.norm(d[i]) * np.linalg.norm(w[i]) for i in range(3)]),
        ),
        (
            nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last),
            lambda d, w: np.stack([d[i] * math.sqrt((w[i] ** 2).sum() / (d[i] ** 2).sum()) for i in range(3)]),
        ),
    ],
    ids=["linear", "convolution"],
)
def test_the_direction_is_a_gaussian_draw_with_each_filter_scaled(layer, scaled):
    drawn = torch.randn(layer.weight.shape, generator=generator(4)).numpy()
    weight, bias = filter_normalised_direction(layer, generator(4))
    np.testing.assert_allclose(weight.numpy(), scaled(drawn, layer.weight.detach().numpy()), rtol=1e-5)
    assert not bias.any()


def test_the_filters_of_twin_critics_are_the_columns_of_each_twin():
    layer = some_agent((5,)).critic.second
    weight = layer.weight.detach().numpy()
    drawn = torch.randn(layer.weight.shape, generator=generator(4)).numpy()
    expected = np.empty_like(drawn)
    for twin in range(2):
        for unit in range(weight.shape[2]):
            column = drawn[twin, :, unit]
            expected[twin, :, unit] = column / np.linalg.norm(column) * np.linalg.norm(weight[twin, :, unit])
    np.testing.assert_allclose(filter_normalised_direction(layer, generator(4))[0].numpy(), expected, rtol=1e-5)


def test_a_filter_without_weights_stays_without():
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight[0] = 0
    direction = filter_normalised_direction(layer, generator())[0]
    assert not direction[0].any()
    assert direction[1].all()


def test_a_layer_that_is_not_known_is_not_left_out_in_silence():
    with pytest.raises(TypeError, match="Embedding"):
        filter_normalised_direction(nn.Sequential(nn.Linear(2, 2), nn.Embedding(3, 2)), generator())


def test_a_quadratic_loss_has_its_analytic_values():
    rng = np.random.default_rng(0)
    start, first, second = ([rng.normal(size=shape) for shape in ((3, 2), (4,))] for _ in range(3))
    weights = [torch.from_numpy(each.copy()) for each in start]
    points = [(x, y) for y in (-0.7, 0.0, 0.2) for x in (-1.0, 0.0, 0.3, 2.0)]
    calls = []
    losses = losses_around(
        weights,
        tuple([torch.from_numpy(each) for each in direction] for direction in (first, second)),
        points,
        lambda: float(3 * weights[0].square().sum() + (weights[1] - 1).square().sum()),
        lambda: calls.append(1),
    )
    expected = [
        3 * ((start[0] + x * first[0] + y * second[0]) ** 2).sum()
        + ((start[1] + x * first[1] + y * second[1] - 1) ** 2).sum()
        for x, y in points
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-12)
    assert len(calls) == len(points)
    assert [each.numpy().tobytes() for each in weights] == [each.tobytes() for each in start]


def test_the_weights_are_restored_if_the_loss_fails():
    weight = torch.randn(3, 2)
    before = weight.clone()

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        losses_around([weight], ([torch.ones(3, 2)], [torch.ones(3, 2)]), [(1.0, 1.0)], interrupted)
    assert torch.equal(weight, before)


def random_batch(observation, count=12):
    rng = np.random.default_rng(1)

    def states():
        if len(observation) == 1:
            return torch.from_numpy(rng.normal(size=(count, *observation)).astype(np.float32))
        return torch.from_numpy(rng.integers(0, 256, (count, *observation), dtype=np.uint8))

    return Transitions(
        states(),
        torch.from_numpy(rng.uniform(-1, 1, (count, 2)).astype(np.float32)),
        torch.from_numpy(rng.normal(size=count).astype(np.float32)),
        states(),
        torch.from_numpy((rng.random(count) > 0.3).astype(np.float32)),
    )


@pytest.mark.parametrize("kind", AGENTS)
def test_the_loss_is_that_of_an_update_with_the_same_noise(kind):
    observation, settings = AGENTS[kind]
    agent = some_agent(observation, **settings)
    batch = random_batch(observation)
    noise = torch.Generator()
    noise.set_state(agent.generator.get_state())
    loss = critic_loss(agent, critic_batch(agent, batch, noise))
    assert loss == pytest.approx(float(agent.update(batch)["critic_loss"]), rel=1e-6)
    # The update has moved the weights, and with them the loss.
    noise.manual_seed(0)
    assert critic_loss(agent, critic_batch(agent, batch, noise)) != pytest.approx(loss, rel=1e-4)


def test_targets_are_those_of_the_trained_weights_everywhere():
    agent = some_agent((5,))
    batch = critic_batch(agent, random_batch((5,)), generator())
    with torch.no_grad():
        agent.critic.last.bias += 7.0
    values = agent.critic(agent.encoder(batch.views.observations), batch.views.actions).detach().numpy()
    expected = sum(((values[twin] - batch.targets.numpy()) ** 2).mean() for twin in range(2))
    assert critic_loss(agent, batch) == pytest.approx(expected, rel=1e-5)


def restored(folder):
    """The training of a folder as `a2ls train --resume` has it: another way to the same agent."""
    job = folder.read_job()
    training = Training(job.config, job.loss, job.seed)
    folder.checkpoint.restore(training)
    training.close()
    return training


def test_the_centre_is_the_critic_loss_of_the_agent(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "envs"), *sys.path])
    settings = LandscapeSettings(resolution=5, batch_size=16, batches=1, seed=5)
    landscape = critic_landscape(read_trained_agent(folder), "", settings)
    training = restored(folder)
    training.agent.generator.manual_seed(settings.part_seed(_landscape._NOISE))
    rng = np.random.default_rng(settings.part_seed(_landscape._TRANSITIONS))
    expected = float(training.agent.update(training.replay.sample_transitions(16, rng))["critic_loss"])
    assert landscape.centre == pytest.approx(expected, rel=1e-6)
    assert landscape.losses[2, 2] == landscape.centre
    assert (landscape.losses != landscape.centre).sum() == 24


def test_the_loss_is_the_mean_over_batches_that_are_all_different(folders):
    trained = read_trained_agent(folders["vector"])
    settings = LandscapeSettings(resolution=3, batch_size=16, batches=3)
    rng = np.random.default_rng(settings.part_seed(_landscape._TRANSITIONS))
    noise = generator(settings.part_seed(_landscape._NOISE))
    losses = [
        critic_loss(trained.agent, critic_batch(trained.agent, trained.replay.sample_transitions(16, rng), noise))
        for _ in range(3)
    ]
    assert len(set(losses)) == 3
    assert critic_landscape(trained, "", settings).centre == pytest.approx(sum(losses) / 3, rel=1e-9)


def test_an_agent_is_read_without_an_environment(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "envs"), *sys.path])
    training = restored(folder)
    monkeypatch.setattr("a2ls.training._training.make_env", None)
    trained = read_trained_agent(folder)
    assert trained.step == training.step == folder.read_job().config.steps
    expected = dict(training.agent.named_parameters())
    for name, value in trained.agent.named_parameters():
        assert torch.equal(value, expected[name]), name
    ours, theirs = (
        replay.sample_transitions(50, np.random.default_rng(0)) for replay in (trained.replay, training.replay)
    )
    for column in dataclasses.fields(ours):
        assert torch.equal(getattr(ours, column.name), getattr(theirs, column.name)), column.name


def test_the_grid_around_an_agent_is_analytic_for_a_quadratic_loss(folder, monkeypatch):
    trained = read_trained_agent(folder)
    networks = nn.ModuleList([trained.agent.encoder, trained.agent.critic])

    def squares(agent, batch):
        return float(sum(parameter.double().square().sum() for parameter in networks.parameters()))

    monkeypatch.setattr(_landscape, "critic_loss", squares)
    settings = LandscapeSettings(resolution=4, extent=0.6, batch_size=4, batches=1, seed=2)
    landscape = critic_landscape(trained, "", settings)

    def flat(tensors):
        return np.concatenate([each.detach().numpy().ravel().astype(np.float64) for each in tensors])

    first, second = (
        flat(filter_normalised_direction(networks, generator(settings.part_seed(part)))) for part in (0, 1)
    )
    weights = flat(networks.parameters())
    places = [-0.6, -0.2, 0.2, 0.6]
    expected = [[((weights + x * first + y * second) ** 2).sum() for x in places] for y in places]
    np.testing.assert_allclose(landscape.positions, places, rtol=1e-12)
    np.testing.assert_allclose(landscape.losses, expected, rtol=1e-5)
    turns = np.arange(16) / 16 * 2 * np.pi
    ring = [((weights + 0.5 * (np.cos(t) * first + np.sin(t) * second)) ** 2).sum() for t in turns]
    assert landscape.sharpness == pytest.approx((np.mean(ring) - landscape.centre) / landscape.centre, rel=1e-4)
    assert landscape.convex_share == 1
    assert abs(first @ second) < 0.5 * np.linalg.norm(first) * np.linalg.norm(second)


def test_an_agent_is_the_same_afterwards_and_a_landscape_the_same_again(folder):
    trained = read_trained_agent(folder)
    before = {name: value.clone() for name, value in trained.agent.named_parameters()}
    noise, outside = trained.agent.generator.get_state(), torch.get_rng_state()
    calls = []
    landscape = critic_landscape(trained, "one", SMALL, lambda: calls.append(1))
    assert len(calls) == SMALL.points == 25 + 16 + 1
    for name, value in trained.agent.named_parameters():
        assert value.detach().numpy().tobytes() == before[name].detach().numpy().tobytes(), name
    assert torch.equal(trained.agent.generator.get_state(), noise)
    assert torch.equal(torch.get_rng_state(), outside)
    again = critic_landscape(read_trained_agent(folder), "two", SMALL)
    assert again.losses.tobytes() == landscape.losses.tobytes()
    assert again.ring.tobytes() == landscape.ring.tobytes()
    other = critic_landscape(trained, "three", dataclasses.replace(SMALL, seed=1))
    assert not np.isclose(other.losses, landscape.losses).any()


def test_neither_resolution_nor_extent_changes_what_is_at_a_place(folders):
    trained = read_trained_agent(folders["vector"])
    small = critic_landscape(trained, "", dataclasses.replace(SMALL, extent=0.5))
    large = critic_landscape(trained, "", dataclasses.replace(SMALL, resolution=9))
    assert small.losses.tobytes() == large.losses[2:7, 2:7].tobytes()
    assert small.sharpness == large.sharpness
    assert small.centre == large.centre


def test_a_run_without_a_checkpoint(tmp_path):
    folder = RunFolder.create(tmp_path / "run", TrainJob(PENDULUM, None, 0))
    with pytest.raises(BadInput, match=r"checkpoint.pt does not exist: a run writes it"):
        read_trained_agent(folder)


def test_files_that_are_no_checkpoint_of_the_run(tmp_path, folders):
    file = tmp_path / "file.pt"
    for content in (b"", b"some text", b"PK\x03\x04 and so on"):
        file.write_bytes(content)
        with pytest.raises(BadInput, match=r"file.pt is no checkpoint of a run"):
            read_trained_agent(folders["vector"], file)
    for state in ({"other": 1}, [1, 2]):
        torch.save(state, file)
        with pytest.raises(BadInput, match=r"file.pt is no checkpoint of a run"):
            read_trained_agent(folders["vector"], file)
    with pytest.raises(BadInput, match="is no checkpoint of the run in"):
        read_trained_agent(folders["vector"], folders["pixels"].checkpoint.path)
    wider = dataclasses.replace(PENDULUM, agent=SACConfig(hidden=9))
    for config, loss in ((wider, WINNER), (PENDULUM, None)):
        other = RunFolder.create(tmp_path / str(config.agent.hidden), TrainJob(config, loss, 0))
        with pytest.raises(BadInput, match="is no checkpoint of the run in"):
            read_trained_agent(other, folders["vector"].checkpoint.path)


def test_agents_without_a_loss_to_compute(folders):
    trained = read_trained_agent(folders["vector"])
    with torch.no_grad():
        trained.agent.critic.first.weight[0, 0, 0] = float("nan")
    with pytest.raises(BadInput, match="loss is nan at the trained weights"):
        critic_landscape(trained, "broken", SMALL)
    trained.replay.added = 0
    with pytest.raises(BadInput, match="the replay memory is empty"):
        critic_landscape(trained, "new", SMALL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resolution": 0}, "resolution is 0, but must be at least 3"),
        ({"resolution": 2}, "resolution is 2, but must be at least 3"),
        ({"extent": 0.0}, "extent is 0.0, but must be above 0"),
        ({"extent": math.inf}, "extent is inf"),
        ({"extent": math.nan}, "extent is nan"),
        ({"batch_size": 0}, "batch_size is 0, but must be at least 1"),
        ({"batches": 0}, "batches is 0"),
        ({"seed": -1}, "seed is -1, but must not be negative"),
    ],
)
def test_settings_that_are_not_allowed(settings, message):
    with pytest.raises(BadInput, match=message):
        LandscapeSettings(**settings)


@pytest.mark.parametrize("resolution", [3, 25, 33, 101])
def test_the_trained_weights_are_exactly_in_the_middle_of_an_odd_grid(resolution):
    positions = LandscapeSettings(resolution=resolution, extent=0.7).positions
    assert positions[resolution // 2] == 0
    assert (positions == -positions[::-1]).all()
    np.testing.assert_allclose(positions, np.linspace(-0.7, 0.7, resolution), atol=1e-15)


def made_up(function, resolution=9, label="made up", shapes=((2, 2),)):
    positions = LandscapeSettings(resolution=resolution).positions
    losses = np.array([[function(x, y) for x in positions] for y in positions], dtype=float)
    turns = np.arange(16) / 16 * 2 * np.pi
    ring = np.array([function(0.5 * np.cos(t), 0.5 * np.sin(t)) for t in turns])
    return Landscape(label, positions, losses, float(function(0, 0)), ring, shapes)


@pytest.mark.parametrize(
    ("function", "share"),
    [
        (lambda x, y: 1 + 3 * x**2 + y**2, 1),
        (lambda x, y: 1 + x**2 + y**2 + 1.9 * x * y, 1),
        (lambda x, y: 1 + x**2 + y**2 + 2.1 * x * y, 0),  # A saddle along the diagonal.
        (lambda x, y: 5 - x**2 - y**2, 0),
        (lambda x, y: 5 + x**2 - y**2, 0),
        (lambda x, y: 2 + x - y, 1),
        (lambda x, y: 5 + x**3 + y**2, 4 / 7),  # The inner places from 0 to the right.
        (lambda x, y: 5 + y**3 + x**2, 4 / 7),
        (lambda x, y: np.inf if x > 0.9 and y > 0.9 else 1 + x**2 + y**2, 48 / 49),
    ],
)
def test_where_a_landscape_is_convex(function, share):
    assert made_up(function).convex_share == pytest.approx(share)


def test_sharpness_and_extremes():
    landscape = made_up(lambda x, y: 2 + 8 * x**2 + 8 * y**2)
    assert landscape.sharpness == pytest.approx((2 + 8 * 0.25 - 2) / 2)
    assert (landscape.lowest, landscape.highest) == (2, 18)
    assert math.isnan(made_up(lambda x, *_: x**2).sharpness)


BOWL = made_up(lambda x, y: 1 + x**2 + 2 * y**2, label="a <bowl> & more")
STEEP = made_up(lambda x, y: 0.01 + 1000 * (x**2 + y**2), label="steep")


def test_one_scale_for_all():
    assert LossScale.shared([BOWL]) == LossScale(False, 1, 4)
    both = LossScale.shared([BOWL, STEEP])
    assert both.log
    assert both.limits == pytest.approx((-2, math.log10(2000.01)))
    assert LossScale.shared([BOWL], "log").log
    assert not LossScale.shared([STEEP], "linear").log
    heights, texts = both.ticks
    assert texts == ["0.01", "0.1", "1", "10", "100", "1e+03"]
    np.testing.assert_allclose([10**height for height in heights], [float(text) for text in texts])
    assert LossScale.shared([BOWL], "log").ticks[1] == ["1", "2"]


def test_scales_of_losses_at_the_limits():
    flat = LossScale.shared([made_up(lambda *_: 2.0)])
    assert flat.limits == (1.5, 2.5)
    nothing = LossScale.shared([made_up(lambda *_: 0.0)], "log")
    assert not nothing.log
    zero = LossScale.shared([made_up(lambda x, *_: abs(x))], "log")
    assert zero.low == 0.25
    assert float(zero.height(0.0)) == pytest.approx(math.log10(0.25))
    broken = LossScale.shared([made_up(lambda x, *_: np.inf if x > 0.9 else np.nan if x < -0.9 else 1 + x**2)])
    assert (broken.low, broken.high) == (1, 1 + 0.75**2)
    assert np.isnan(broken.height(np.array([np.inf, np.nan]))).all()


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("choice", ["linear", "log"])
def test_pictures_share_their_axes_and_colours(count, choice):
    landscapes = [BOWL, STEEP, BOWL, STEEP, BOWL][:count]
    scale = LossScale.shared(landscapes, choice)
    figure = landscape_figure(landscapes, scale, columns=2)
    layout = figure.layout
    surfaces = [trace for trace in figure.data if trace.type == "surface"]
    maps = [trace for trace in figure.data if trace.type == "contour"]
    assert len(surfaces) == len(maps) == count
    for landscape, surface, heat_map in zip(landscapes, surfaces, maps, strict=True):
        expected = np.log10(landscape.losses) if choice == "log" else landscape.losses
        for trace in (surface, heat_map):
            np.testing.assert_allclose(np.array(trace.z), expected)
            np.testing.assert_array_equal(trace.x, landscape.positions)
            assert trace.coloraxis == "coloraxis"
            # Whatever the scale, the label under the pointer has the loss itself.
            assert trace.text[0][8] == f"1.00, -1.00<br>loss {landscape.losses[0, 8]:.4g}"
    contours = {(trace.contours.start, trace.contours.end, trace.contours.size) for trace in maps}
    assert len(contours) == 1
    assert (layout.coloraxis.cmin, layout.coloraxis.cmax) == pytest.approx(scale.limits)
    scenes = [layout[f"scene{i or ''}"] for i in [None, *range(2, count + 1)]]
    assert len({surface.scene for surface in surfaces}) == count
    for scene in scenes:
        assert scene.zaxis.range == pytest.approx(scale.limits)
        assert (scene.xaxis.range, scene.yaxis.range) == ((-1, 1), (-1, 1))
        assert scene.camera == scenes[0].camera
    assert len({(trace.xaxis, trace.yaxis) for trace in maps}) == count
    for trace in maps:
        assert layout[trace.xaxis.replace("x", "xaxis")].matches == "x"
        assert layout[trace.yaxis.replace("y", "yaxis")].matches == "y"
        assert layout[trace.xaxis.replace("x", "xaxis")].range == (-1, 1)
    assert layout.autosize
    assert layout.width is None
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0, 0, 0, 0)"
    assert [title.text for title in layout.annotations if title.text][:1] == ["a &lt;bowl&gt; &amp; more"]


def test_the_caption_says_what_is_shared():
    settings = LandscapeSettings(batch_size=100, batches=20, seed=7)
    caption = landscape_caption([BOWL, STEEP], settings, LossScale.shared([BOWL, STEEP]))
    assert "(seed 7)" in caption
    assert "the same 2,000 transitions" in caption
    assert "the same draw of directions" in caption
    assert "logarithmic" in caption
    other = dataclasses.replace(STEEP, shapes=((3, 3),))
    caption = landscape_caption([BOWL, other], settings, LossScale.shared([BOWL, other], "linear"))
    assert "not all of the same shapes" in caption
    assert "the same draw" not in caption
    assert "logarithmic" not in caption
    assert "draw" not in landscape_caption([BOWL], settings, LossScale.shared([BOWL]))


def test_the_page_needs_no_other_file():
    page = landscape_page([BOWL, STEEP], LandscapeSettings())
    assert re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", page) == []
    assert "Plotly.newPlot" in page
    assert "<td>a &lt;bowl&gt; &amp; more</td><td>1</td><td>1</td><td>4</td>" in page
    assert "filter-normalised" in page
