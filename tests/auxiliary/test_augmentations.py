"""Every augmentation against the same view made with numpy, and how often it makes which."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls._errors import BadInput
from a2ls.auxiliary import make_augmentation

CHANNELS = 9
IMAGE_KINDS = ["crop", "shift", "translate"]
# Frame size and image size of each, with several places in both directions.
SIZES = {"crop": (7, 4), "shift": (6, 84), "translate": (5, 8)}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images(count, size, seed=0):
    """Noise, so that no two windows look alike."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, CHANNELS, size, size), dtype=np.uint8)
    return torch.from_numpy(pixels)


def make(kind):
    frame, size = SIZES[kind]
    return make_augmentation(kind, (CHANNELS, frame, frame), size)


def all_views(kind, image):
    """Every view that may come of an image (channels, n, n), by place: numpy's own padding and slices."""
    image, (frame, size) = np.asarray(image), SIZES[kind]
    views = {}
    if kind == "translate":
        for top in range(size - frame + 1):
            for left in range(size - frame + 1):
                square = np.zeros((CHANNELS, size, size))
                square[:, top : top + frame, left : left + frame] = image
                views[top, left] = square
        return views
    if kind == "shift":
        image, size = np.pad(image, [(0, 0), (4, 4), (4, 4)], mode="edge"), frame
    places = image.shape[1] - size + 1
    return {
        (top, left): image[:, top : top + size, left : left + size] for top in range(places) for left in range(places)
    }


def places_of(kind, views, originals):
    """Where each view was made; fails if it is no view of its image, with all channels at one place."""
    found = []
    for view, image in zip(views, originals, strict=True):
        matching = [place for place, expected in all_views(kind, image).items() if np.array_equal(view, expected)]
        assert len(matching) == 1
        found += matching
    return found


def places_of_one_image(kind, draws, blocks):
    """The places of many views of the same image, for each block."""
    image = images(1, SIZES[kind][0])
    known = {np.float32(view).tobytes(): place for place, view in all_views(kind, image[0]).items()}
    drawn = make(kind).views([image.expand(draws, -1, -1, -1)] * blocks, generator(1))
    return [[known[view.contiguous().numpy().tobytes()] for view in views] for views in drawn]


def about_even(counts):
    """Chi-square at five standard deviations."""
    counts = np.asarray(counts)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    freedom = counts.size - 1
    return statistic < freedom + 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_a_view_shows_its_image_at_one_place_in_all_channels(kind):
    frame, size = SIZES[kind]
    batch = images(12, frame)
    (views,) = make(kind).views([batch], generator())
    assert views.shape == (12, CHANNELS, *2 * [frame if kind == "shift" else size])
    assert make(kind).shape == views.shape[1:]
    assert len(set(places_of(kind, views, batch))) > 1


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_every_place_is_equally_likely_the_extremes_included(kind):
    side = {"crop": 7 - 4 + 1, "shift": 2 * 4 + 1, "translate": 8 - 5 + 1}[kind]
    (seen,) = places_of_one_image(kind, draws=60 * side**2, blocks=1)
    assert about_even([seen.count((top, left)) for top in range(side) for left in range(side)])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 2**31))
def test_a_crop_of_any_size_is_a_window(size, more, seed):
    frame = size + more
    batch = images(3, frame, seed)
    (views,) = make_augmentation("crop", (CHANNELS, frame, frame), size).views([batch], generator(seed))
    for view, image in zip(views.numpy(), batch.numpy(), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), axis=(1, 2))
        assert (windows == view[:, None, None]).all(axis=(0, 3, 4)).any()


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


def test_the_plain_crop_is_the_middle_and_the_plain_shift_is_the_image():
    for frame in (7, 8):
        batch = images(3, frame)
        plain = make_augmentation("crop", (CHANNELS, frame, frame), 4).plain(batch)
        assert np.array_equal(plain, batch.numpy()[:, :, (frame - 4) // 2 :, (frame - 4) // 2 :][:, :, :4, :4])
    batch = images(3, 6)
    assert torch.equal(make("shift").plain(batch), batch)


@pytest.mark.parametrize(("frame", "border"), [(6, 1), (4, 2), (78, 3)])
def test_the_plain_translation_is_in_the_middle_of_black(frame, border):
    size = frame + 2 * border
    batch = images(2, frame)
    expected = np.zeros((2, CHANNELS, size, size))
    expected[:, :, border : border + frame, border : border + frame] = batch
    assert np.array_equal(make_augmentation("translate", (CHANNELS, frame, frame), size).plain(batch), expected)


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_views_do_not_depend_on_how_images_are_stored_and_leave_them_as_they_were(kind):
    batch, augmentation = images(8, SIZES[kind][0]), make(kind)
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


def test_scale_is_one_factor_a_sample_for_all_blocks():
    blocks = [vectors(50, 3, seed=1), vectors(50, 3, seed=2)]
    views = make_augmentation("scale", (3,), 84).views(blocks, generator())
    factors = np.stack([(view / block).numpy() for view, block in zip(views, blocks, strict=True)])
    np.testing.assert_allclose(factors, np.broadcast_to(factors[:1, :, :1], factors.shape), rtol=1e-5)
    assert len(np.unique(factors[0, :, 0].round(5))) == 50


def test_scale_is_uniform_from_a_half_to_one_and_a_half():
    (views,) = make_augmentation("scale", (1,), 84).views([torch.ones(20_000, 1)], generator())
    factors = views.numpy()[:, 0]
    assert 0.5 <= factors.min() < 0.501
    assert 1.499 < factors.max() <= 1.5
    assert about_even(np.histogram(factors, bins=20, range=(0.5, 1.5))[0])


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
        augmentation, blocks = make(kind), [images(20, SIZES[kind][0], seed=i) for i in range(2)]
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
        ("scale", (9, 84, 84), 84, "augmentation is 'scale', which is for vectors; images can have crop, shift"),
        ("noise", (9, 84, 84), 84, "augmentation is 'noise', which is for vectors; images can have crop, shift"),
        ("crop", (17,), 84, "augmentation is 'crop', which is for images; vectors can have scale or noise"),
        ("shift", (17,), 84, "augmentation is 'shift', which is for images; vectors can have scale or noise"),
        ("translate", (17,), 84, "augmentation is 'translate', which is for images; vectors can have scale or noise"),
        ("crop", (9, 100, 90), 84, "square images, but these are 100 x 90"),
        ("shift", (9, 100, 90), 84, "square images, but these are 100 x 90"),
        ("crop", (9, 84, 84), 84, "frame_size is 84, but crop needs one above image_size, which is 84"),
        ("crop", (9, 60, 60), 84, "frame_size is 60, but crop needs one above image_size, which is 84"),
        ("translate", (9, 84, 84), 84, "frame_size is 84, but translate needs one below image_size, which is 84"),
        ("translate", (9, 100, 100), 84, "frame_size is 100, but translate needs one below image_size, which is 84"),
        ("blur", (9, 84, 84), 84, "no augmentation 'blur'; allowed are none, crop, shift, translate, scale, noise"),
        ("blur", (5,), 84, "no augmentation 'blur'; allowed are none, crop, shift, translate, scale, noise"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(kind, shape, size, words):
    with pytest.raises(BadInput, match=words):
        make_augmentation(kind, shape, size)


def test_images_of_another_size_are_refused():
    with pytest.raises(ValueError, match="but must have"):
        make("crop").views([images(2, SIZES["crop"][0] + 1)], generator())
