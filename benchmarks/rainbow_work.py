"""The convolutions and matrix products that an update of Rainbow cannot do without, and how fast a machine does those.

They are derived from the sizes of the networks and the masks of the loss, not taken from a profiler, so that the two
can check each other. Three batches go through the network of the values: the next observations without gradients, once
through the network itself and once through the target network, and the observations, forward and backward. Products
with a single column are left out, since a sum computes them faster: the means of the distributions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import matrix_products
from convolutions import CHANNELS_LAST, CONTIGUOUS, Pass, Stack, stack
from matrix_products import DENSE_WIDTH, PREDICTOR_HIDDEN, Product, quickest

from a2ls.space import Element, Loss

CONVOLUTIONS = ((32, 5, 5), (64, 5, 5))
"""Of data-efficient Rainbow: filters, side of the kernel and stride of each."""
HEAD = (256, 128)
"""Units of the layers of the head that the auxiliary loss sees images through."""
NETWORKS = 2
"""Those that look at the next observations: the network itself, and the target network."""


@dataclass(frozen=True)
class RainbowSizes:
    """The sizes of an update of Rainbow.

    The encoder is that of data-efficient Rainbow for images, and the paper's with one dense layer for vectors.
    """

    hidden: int
    """Units in the hidden layer of each of the two streams."""
    batch: int
    """Transitions in a batch, and sequences in a batch of the auxiliary loss."""
    observation: tuple[int, ...]
    """Channels, height and width of an image, or the length of a vector."""
    actions: int
    atoms: int

    def __str__(self) -> str:
        return f"{self.hidden}x{self.batch}"

    @property
    def images(self) -> bool:
        """Whether observations are images."""
        return len(self.observation) == 3

    def convolutions(self, batches: int = 1) -> Stack:
        """Those of the encoder, for so many batches of images at once."""
        return stack(self.observation[-1], self.batch * batches, self.observation[0], CONVOLUTIONS)

    @property
    def body(self) -> int:
        """Features of the encoder's body, which the values are computed from."""
        if self.images:
            last = self.convolutions().layers[-1]
            return last.side**2 * last.outputs
        return self.observation[0] + DENSE_WIDTH

    @property
    def trained(self) -> int:
        """Features of the body that have weights to train behind them: a dense body also hands on the observation."""
        return self.body if self.images else DENSE_WIDTH

    @property
    def head(self) -> tuple[int, ...]:
        """Units of the head, from what goes in to what comes out."""
        return (self.body, *HEAD) if self.images else (self.body, self.body)


@dataclass
class Work:
    """What must be computed: each product and each pass of convolutions as often as it occurs."""

    products: Counter[Product] = field(default_factory=Counter)
    forward: Counter[Stack] = field(default_factory=Counter)
    """Convolutions without gradients."""
    both: Counter[Stack] = field(default_factory=Counter)
    """Convolutions forward and backward; nothing needs the gradient of the images."""

    @property
    def convolution_flops(self) -> int:
        """Floating-point operations of the convolutions."""
        forward = sum(each.forward_flops * count for each, count in self.forward.items())
        return forward + sum(each.both_flops * count for each, count in self.both.items())

    @property
    def flops(self) -> int:
        """Floating-point operations of all of it."""
        return self.convolution_flops + matrix_products.pair_flops(self.products)

    def prepare(self) -> Callable[[], None]:
        """A function that does it, in the layouts in which this machine is fastest.

        Convolutions have their biases and ReLUs; the conversion of pixels is left out.
        """
        multiply = matrix_products.prepare(self.products)
        passes: list[tuple[Callable[[], object], int]] = []
        for each, count in self.forward.items():
            passes.append((min((made.forward for made in _layouts(each)), key=quickest), count))
        for each, count in self.both.items():
            passes.append((min((made.both for made in _layouts(each)), key=quickest), count))

        def run() -> None:
            multiply()
            for run_pass, count in passes:
                for _ in range(count):
                    run_pass()

        return run


def _layouts(convolutions: Stack) -> list[Pass]:
    return [Pass(convolutions, layout) for layout in (CONTIGUOUS, CHANNELS_LAST)]


def update_work(sizes: RainbowSizes, loss: Loss | None = None) -> Work:
    """What one update cannot do without.

    Args:
        sizes: Of its networks and its batch.
        loss: The auxiliary loss, on a batch of the same size, or None for the plain agent.
    """
    work = Work()
    for _ in range(NETWORKS):
        _encode(work, sizes)
        work.products.update(_values_forward(sizes))
    _encode(work, sizes, trains=True)
    work.products.update([*_values_forward(sizes), *_values_backward(sizes)])
    if loss is not None:
        _add_auxiliary(work, sizes, loss.canonical())
    return work


def _encode(work: Work, sizes: RainbowSizes, batches: int = 1, *, trains: bool = False) -> None:
    """Let so many batches, all at once, go through the body of the encoder."""
    if sizes.images:
        (work.both if trains else work.forward)[sizes.convolutions(batches)] += 1
        return
    layer = (sizes.observation[0], DENSE_WIDTH)
    work.products.update(_forward(sizes.batch * batches, *layer))
    if trains:
        work.products.update(_backward(sizes.batch * batches, *layer, needed=0))


def _noisy_layers(sizes: RainbowSizes) -> list[tuple[int, int]]:
    hidden, atoms = sizes.hidden, sizes.atoms
    return [(sizes.body, hidden), (sizes.body, hidden), (hidden, atoms), (hidden, sizes.actions * atoms)]


def _values_forward(sizes: RainbowSizes) -> list[Product]:
    return [product for layer in _noisy_layers(sizes) for product in _forward(sizes.batch, *layer)]


def _values_backward(sizes: RainbowSizes) -> list[Product]:
    products = []
    for inputs, outputs in _noisy_layers(sizes):
        needed = sizes.trained if inputs == sizes.body else inputs
        products += _backward(sizes.batch, inputs, outputs, needed=needed)
    return products


def _add_auxiliary(work: Work, sizes: RainbowSizes, loss: Loss) -> None:
    batch, features = sizes.batch, sizes.head[-1]
    sources, targets = (_states(side) for side in (loss.source_elements, loss.target_elements))
    widths = {"s": features, "a": sizes.actions, "r": 1}
    source, target = (
        sum(widths[element.kind] for element in side) for side in (loss.source_elements, loss.target_elements)
    )
    if targets:
        _encode(work, sizes, targets)
        work.products.update(_forward(batch * targets, *sizes.head))
    if sources:
        _encode(work, sizes, sources, trains=True)
        work.products.update(_forward(batch * sources, *sizes.head))
        work.products.update(_backward(batch * sources, *sizes.head, needed=sizes.trained))
    if loss.predictor:
        predictor = (source, PREDICTOR_HIDDEN, target)
        work.products.update(_forward(batch, *predictor))
        work.products.update(_backward(batch, *predictor, needed=sources * features))
    similarity = loss.operator.similarity
    if similarity == "bilinear":
        work.products.update([*_forward(batch, target, target), *_backward(batch, target, target, needed=target)])
    if similarity in ("inner", "cosine", "bilinear"):
        # Every prediction with every target; only the predictions are trained.
        work.products.update([Product(batch, target, batch), Product(batch, batch, target)])


def _states(elements: tuple[Element, ...]) -> int:
    return sum(element.kind == "s" for element in elements)


def _forward(batch: int, *sizes: int) -> list[Product]:
    """What linear layers of these sizes give."""
    return [Product(batch, inputs, outputs) for inputs, outputs in pairwise(sizes)]


def _backward(batch: int, *sizes: int, needed: int) -> list[Product]:
    """The gradients of the weights of linear layers, and of so many of the numbers that go in."""
    products = []
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        columns = inputs if i else needed
        products.append(Product(inputs, batch, outputs))
        if columns:
            products.append(Product(batch, outputs, columns))
    return products
