"""Every augmentation against the same view made with numpy, and how often it makes which."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls._errors import BadInput
from a2ls.auxiliary import make_augmentation
from helpers.agents import CHANNELS, generator, images

IMAGE_KINDS = ["crop", "shift", "translate"]
# Frame size and image size of each, with several places in both directions.
SIZES = {"crop": (7, 4), "shift": (6, 84), "translate": (5, 8)}


def make(kind, sizes=None):
    frame, size = sizes or SIZES[kind]
    return make_augmentation(kind, (CHANNELS, frame, frame), size)


def all_views(kind, image, size):
    """Every view that may come of an image (channels, n, n), by place: numpy's own padding and slices."""
    image = np.asarray(image)
    frame = image.shape[1]
    if kind == "translate":
        border = size - frame
        image = np.pad(image, [(0, 0), (border, border), (border, border)])
    if kind == "shift":
        image, size = np.pad(image, [(0, 0), (4, 4), (4, 4)], mode="edge"), frame
    places = range(image.shape[1] - size + 1)
    return {(top, left): image[:, top : top + size, left : left + size] for top in places for left in places}


def places_of_one_image(kind, draws, blocks):
    """The places of many views of the same image, for each block."""
    frame, size = SIZES[kind]
    image = images(1, frame=frame)
    known = {np.float32(view).tobytes(): place for place, view in all_views(kind, image[0], size).items()}
    drawn = make(kind).views([image.expand(draws, -1, -1, -1)] * blocks, generator(1))
    return [[known[view.contiguous().numpy().tobytes()] for view in views] for views in drawn]


def about_even(counts):
    """Chi-square at five standard deviations."""
    counts = np.asarray(counts)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    freedom = counts.size - 1
    return statistic < freedom + 5 * math.sqrt(2 * freedom)


@settings(max_examples=60)
@given(st.sampled_from(IMAGE_KINDS), st.integers(1, 9), st.integers(1, 6), st.integers(0, 2**31))
def test_a_view_shows_its_image_at_one_place_in_all_channels(kind, small, more, seed):
    frame, size = (small + more, small) if kind == "crop" else (small, small + more)
    batch, augmentation = images(3, seed, frame), make(kind, (frame, size))
    (views,) = augmentation.views([batch], generator(seed))
    assert augmentation.shape == views.shape[1:] == (CHANNELS, *2 * [frame if kind == "shift" else size])
    for view, image in zip(views, batch, strict=True):
        assert any(np.array_equal(view, each) for each in all_views(kind, image, size).values())


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_every_place_is_equally_likely_the_extremes_included(kind):
    side = {"crop": 7 - 4 + 1, "shift": 2 * 4 + 1, "translate": 8 - 5 + 1}[kind]
    (seen,) = places_of_one_image(kind, draws=60 * side**2, blocks=1)
    assert about_even([seen.count((top, left)) for top in range(side) for left in range(side)])


def uncorrelated(a, b):
    return abs(np.corrcoef(a, b)[0, 1]) < 5 / math.sqrt(len(a))


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_directions_samples_and_images_that_belong_together_are_drawn_independently(kind):
    first, second = map(np.array, places_of_one_image(kind, draws=400, blocks=2))
    assert uncorrelated(first[:, 0], first[:, 1])
    assert all(uncorrelated(first[1:, a], first[:-1, b]) for a in (0, 1) for b in (0, 1))
    if kind == "translate":  # RAD's, which is at one place in all images of a trajectory.
        assert np.array_equal(first, second)
    else:
        assert all(uncorrelated(first[:, a], second[:, b]) for a in (0, 1) for b in (0, 1))


@pytest.mark.parametrize(
    ("kind", "frame", "size", "place"),
    [("crop", 7, 4, 1), ("crop", 8, 4, 2), ("shift", 6, 84, 4), ("translate", 6, 8, 1), ("translate", 5, 8, 2)],
)
def test_the_plain_view_is_the_one_in_the_middle(kind, frame, size, place):
    batch = images(3, frame=frame)
    for view, image in zip(make(kind, (frame, size)).plain(batch), batch, strict=True):
        assert np.array_equal(view, all_views(kind, image, size)[place, place])


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_views_do_not_depend_on_how_images_are_stored_and_leave_them_as_they_were(kind):
    batch, augmentation = images(8, frame=SIZES[kind][0]), make(kind)
    for stored in (
        batch.contiguous(memory_format=torch.channels_last),
        batch.repeat_interleave(2, dim=3)[:, :, :, ::2],
        batch.float(),
    ):
        assert torch.equal(augmentation.plain(batch), augmentation.plain(stored))
        views = augmentation.views([stored], generator())[0]
        assert torch.equal(augmentation.views([batch], generator())[0], views)
        views.zero_()
        assert torch.equal(batch, stored.to(torch.uint8))


def vectors(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def test_scale_is_one_factor_a_sample_for_all_blocks_uniform_from_a_half_to_one_and_a_half():
    blocks = [vectors(20_000, 3, seed=1), vectors(20_000, 3, seed=2)]
    views = make_augmentation("scale", (3,), 84).views(blocks, generator())
    for view, block in zip(views, blocks, strict=True):
        factors = view[:, :1] / block[:, :1]
        torch.testing.assert_close(view, factors * block)
        torch.testing.assert_close(view, views[0][:, :1] / blocks[0][:, :1] * block, rtol=1e-4, atol=1e-5)
    assert 0.5 - 1e-5 <= factors.min() < 0.501
    assert 1.499 < factors.max() <= 1.5 + 1e-5
    assert about_even(np.histogram(factors, bins=20, range=(0.5 - 1e-5, 1.5 + 1e-5))[0])


def test_noise_is_standard_normal_and_independent():
    blocks = [vectors(4000, 4, seed=1), vectors(4000, 4, seed=2)]
    views = make_augmentation("noise", (4,), 84).views(blocks, generator())
    noise = np.concatenate([(view - block).numpy() for view, block in zip(views, blocks, strict=True)], axis=1)
    assert noise.mean() == pytest.approx(0, abs=5 / math.sqrt(noise.size))
    assert noise.std() == pytest.approx(1, abs=5 / math.sqrt(2 * noise.size))
    assert (noise**4).mean() == pytest.approx(3, abs=0.3)
    correlations = np.corrcoef(noise.T) - np.eye(8)
    assert np.abs(correlations).max() < 5 / math.sqrt(4000)
    assert abs(np.corrcoef(noise[1:].ravel(), noise[:-1].ravel())[0, 1]) < 5 / math.sqrt(noise.size)


@pytest.mark.parametrize("kind", ["scale", "noise"])
def test_vectors_are_acted_on_as_they_are(kind):
    augmentation, states = make_augmentation(kind, (3,), 84), vectors(5, 3)
    kept = states.clone()
    assert torch.equal(augmentation.plain(states), kept)
    augmentation.views([states], generator())
    assert torch.equal(states, kept)
    assert augmentation.shape == (3,)


@pytest.mark.parametrize("shape", [(5,), (CHANNELS, 6, 6), (CHANNELS, 6, 8)])
def test_none_does_nothing(shape):
    augmentation, blocks = make_augmentation("none", shape, 84), [vectors(4, *shape, seed=i) for i in range(3)]
    state = generator().get_state()
    unused = generator()
    views = augmentation.views(blocks, unused)
    assert all(torch.equal(view, block) for view, block in zip(views, blocks, strict=True))
    assert torch.equal(augmentation.plain(blocks[0]), blocks[0])
    assert augmentation.shape == shape
    assert torch.equal(unused.get_state(), state)


@pytest.mark.parametrize("kind", [*IMAGE_KINDS, "scale", "noise"])
def test_views_are_a_function_of_the_generator_alone(kind):
    if kind in IMAGE_KINDS:
        augmentation, blocks = make(kind), [images(20, i, SIZES[kind][0]) for i in range(2)]
    else:
        augmentation, blocks = make_augmentation(kind, (3,), 84), [vectors(20, 3, seed=i) for i in range(2)]
    torch.manual_seed(1)
    before = torch.get_rng_state()
    mine = generator(4)
    first = torch.cat(augmentation.views(blocks, mine))
    following = torch.cat(augmentation.views(blocks, mine))
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert torch.equal(first, torch.cat(augmentation.views(blocks, generator(4))))
    assert not torch.equal(first, following)
    assert not torch.equal(first, torch.cat(augmentation.views(blocks, generator(5))))


@pytest.mark.parametrize(
    ("kind", "shape", "size", "words"),
    [
        ("noise", (9, 84, 84), 84, "augmentation is 'noise', which is for vectors; images can have crop, shift"),
        ("crop", (17,), 84, "augmentation is 'crop', which is for images; vectors can have scale or noise"),
        ("shift", (9, 100, 90), 84, "square images, but these are 100 x 90"),
        ("crop", (9, 84, 84), 84, "frame_size is 84, but crop needs one above image_size, which is 84"),
        ("translate", (9, 84, 84), 84, "frame_size is 84, but translate needs one below image_size, which is 84"),
        ("blur", (9, 84, 84), 84, "no augmentation 'blur'; allowed are none, crop, shift, translate, scale, noise"),
        ("blur", (5,), 84, "no augmentation 'blur'; allowed are none, crop, shift, translate, scale, noise"),
    ],
)
def test_what_cannot_be_is_refused_in_words(kind, shape, size, words):
    with pytest.raises(BadInput, match=words):
        make_augmentation(kind, shape, size)


def test_images_of_another_size_are_refused():
    with pytest.raises(ValueError, match="but must have"):
        make("crop").views([images(2, frame=SIZES["crop"][0] + 1)], generator())
