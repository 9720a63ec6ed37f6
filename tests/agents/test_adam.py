"""The optimiser against torch's own."""

import copy

import pytest
import torch

from a2ls.agents._adam import Adam

SHAPES = [(3, 4), (4,), (), (2, 3, 1)]


def gradients(steps):
    """Of very different sizes, some of them zero, so that eps and the bias corrections count."""
    generator = torch.Generator().manual_seed(1)

    def gradient(step, shape):
        size = 10.0 ** torch.randint(-9, 3, (), generator=generator)
        return size * torch.randn(shape, generator=generator) * (step % 7 > 0)

    return [[gradient(step, shape) for shape in SHAPES] for step in range(steps)]


def parameters():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in SHAPES]


@torch.inference_mode()
def take(optimizer, grads):
    for step in grads:
        optimizer.step(step)


@pytest.mark.parametrize(("rate", "betas"), [(1e-3, (0.9, 0.999)), (3e-2, (0.5, 0.999))])
def test_it_is_torchs_adam(rate, betas):
    mine, theirs = parameters(), parameters()
    take(Adam(mine, rate, betas), gradients(200))
    reference = torch.optim.Adam(theirs, rate, betas)
    for step in gradients(200):
        for parameter, gradient in zip(theirs, step, strict=True):
            parameter.grad = gradient
        reference.step()
    for start, a, b in zip(parameters(), mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        assert not torch.allclose(a, start, atol=10 * rate)


def test_a_restored_optimiser_goes_on_identically():
    mine = parameters()
    optimizer = Adam(mine, 1e-2)
    take(optimizer, gradients(40)[:20])
    saved, twin = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(mine)
    take(optimizer, gradients(40)[20:])
    restored = Adam(twin, 1e-2)
    restored.load_state_dict(saved)
    take(restored, gradients(40)[20:])
    assert all(torch.equal(a, b) for a, b in zip(mine, twin, strict=True))
    fresh = copy.deepcopy(parameters())
    take(Adam(fresh, 1e-2), gradients(40)[20:])
    assert not torch.allclose(fresh[0], mine[0])


@pytest.mark.parametrize("missing", range(len(SHAPES)))
def test_a_missing_gradient_is_an_error_and_never_another_parameters(missing):
    mine = parameters()
    given = gradients(2)[1]
    given.pop(missing)
    with pytest.raises(RuntimeError), torch.inference_mode():
        Adam(mine, 1e-2).step(given)
    assert all(torch.equal(a, b) for a, b in zip(mine, parameters(), strict=True))
