"""Settings of the agent that cannot be meant, and those of presets."""

import dataclasses

import pytest

from a2ls._errors import BadInput
from a2ls.agents import SACConfig
from a2ls.agents._sac_config import sac_preset
from a2ls.search import SearchConfig
from a2ls.space import find_loss
from a2ls.training import TrainJob, preset, to_mapping, with_mapping
from helpers.agents import make_agent


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in ("hidden", "predictor_hidden", "encoder_width", "filters", "image_size")),
        *((name, 0) for name in ("actor_every", "target_every", "augmented_views", "encoder_layers")),
        *((name, 0.0) for name in ("lr", "predictor_lr", "encoder_lr", "alpha_lr", "initial_alpha")),
        *(("lr", float("nan")), ("encoder_tau", float("nan")), ("critic_tau", 1.5)),
        *(("gamma", 1.1), ("gamma", -0.1), ("auxiliary_weight", -1.0), ("encoder_layers", 5)),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name_and_value(name, value):
    with pytest.raises(BadInput, match=f"^{name} is {value}, but must"):
        SACConfig(**{name: value})


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(BadInput, match=r"^encoder_layers is 7, but must be from 1 to 6 for conv"):
        SACConfig(encoder="conv", encoder_layers=7)
    with pytest.raises(BadInput, match="augmented_views is 2, but without augmentation all are the same"):
        SACConfig(augmented_views=2)


@pytest.mark.parametrize(
    ("encoder", "hint"), [("dens", "did you mean dense?"), ("xyz", "allowed are dense, mlp, identity, conv, atari")]
)
def test_an_unknown_encoder_gets_the_nearest_or_all_there_are(encoder, hint):
    with pytest.raises(BadInput) as caught:
        SACConfig(encoder=encoder)
    assert str(caught.value) == f"encoder is {encoder!r}: {hint}, or module:function of your own"


def test_encoders_are_for_images_or_for_vectors_and_one_s_own_for_either():
    suits = {"conv": [True], "dense": [False], "mlp": [False], "identity": [False], "mine:encoder": [True, False]}
    for encoder, allowed in suits.items():
        config = SACConfig(encoder=encoder)
        assert config.trains_encoder == (encoder != "identity")
        for pixels in (True, False):
            if pixels in allowed:
                config.require_observations(pixels=pixels)
            else:
                with pytest.raises(BadInput, match=f"encoder is '{encoder}', but the agent sees "):
                    config.require_observations(pixels=pixels)


def test_small_presets_differ_from_those_of_the_paper_in_their_sizes_alone():
    vectors, images = sac_preset("paper-vector", None), sac_preset("paper-image-search", "cheetah-run")
    assert vectors == SACConfig()
    sizes = {"fast": (256, 32, 84), "quick": (128, 32, 84), "fast-image": (256, 16, 36), "quick-image": (128, 8, 36)}
    for name, (hidden, filters, image_size) in sizes.items():
        paper = images if name.endswith("image") else vectors
        expected = vars(paper) | {"hidden": hidden, "filters": filters, "image_size": image_size}
        assert vars(sac_preset(name, "cheetah-run")) == expected
    assert sac_preset("paper-vector", "cheetah-run").lr == 2e-4
    assert (images.encoder, images.actor_encoder, images.augmentation) == ("conv", "shared", "crop")


def test_an_mlp_of_earlier_versions_keeps_its_width():
    former = {name: value for name, value in to_mapping(SACConfig(encoder="mlp", hidden=64)).items()
              if name not in ("encoder_width", "auxiliary_batch", "auxiliary_views")}  # fmt: skip
    assert with_mapping(SACConfig(), former) == SACConfig(encoder="mlp", hidden=64, encoder_width=64)
    # Who writes a file says what is to be otherwise, and not everything.
    assert with_mapping(SACConfig(), {"encoder": "mlp", "hidden": 64}).encoder_width == 40
    assert with_mapping(SACConfig(), former | {"encoder": "dense"}).encoder_width == 40


@pytest.mark.parametrize(
    ("settings", "loss", "message"),
    [
        ({"auxiliary_batch": "critic"}, "a2-winner", "for losses of one state alone, but the loss is s1 a1"),
        ({"auxiliary_batch": "critic"}, "s0 a0 -> s0", "for losses of one state alone, but the loss is s0 a0 -> s0"),
        ({"auxiliary_batch": "critic"}, "s0 -> s1", "for losses of one state alone, but the loss is s0 -> s1"),
        ({"predictor": "none"}, "s0 a0 -> s1", "as many states, actions and rewards on both sides, but the loss is s0"),
    ],
)
def test_settings_that_are_for_a_few_losses_alone(settings, loss, message):
    config = dataclasses.replace(preset("fast"), agent=SACConfig(**settings))
    with pytest.raises(BadInput, match=message):
        TrainJob(config, find_loss(loss), 0)
    with pytest.raises(BadInput, match=message):
        make_agent(find_loss(loss), **settings)
    with pytest.raises(BadInput, match="but the loss is"):
        SearchConfig(config)
    TrainJob(config, find_loss("state-reconstruction"), 0)


def test_a_view_is_not_compared_with_itself():
    with pytest.raises(BadInput, match="a view would be compared with itself"):
        SACConfig(auxiliary_batch="critic", auxiliary_views="shared")
