"""The matrix products that an update cannot do without, and how fast this machine does just those.

The list is derived from the sizes of the networks, not taken from a profiler, so that the two can check each other. It
is a lower bound: a product is in it only with the columns that are needed (the critic's step needs the gradient of the
features but not of the actions, the actor's step the reverse), and the critics' last layer, which has a single column,
is left out, since a sum computes it faster than a matrix product does. PyTorch's count of the real update is some 2 %
higher: autograd computes the gradients of all columns of an input, also where nothing needs those of some.
"""

from __future__ import annotations

import functools
import timeit
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from a2ls.space import Loss

DENSE_WIDTH = 40
PREDICTOR_HIDDEN = 256
UPDATES_PER_PAIR = 2
CRITICS = 2


@dataclass(frozen=True)
class Sizes:
    """The sizes of an update; the encoder is the paper's with one dense layer."""

    hidden: int
    """Units in each of the two hidden layers of the actor and of the critics."""
    batch: int
    """Transitions in a batch, and sequences in a batch of the auxiliary loss."""
    observation: int = 17
    """Length of an observation; the default is Cheetah-Run's."""
    action: int = 6
    """Length of an action; the default is Cheetah-Run's."""

    def __str__(self) -> str:
        return f"{self.hidden}x{self.batch}"

    @property
    def features(self) -> int:
        """Length of what the encoder gives."""
        return self.observation + DENSE_WIDTH


@dataclass(frozen=True)
class Product:
    """`copies` independent products (rows, inner) x (inner, columns), done in one call."""

    rows: int
    inner: int
    columns: int
    copies: int = 1

    @property
    def flops(self) -> int:
        """Floating-point operations: a multiplication and an addition for each term."""
        return 2 * self.copies * self.rows * self.inner * self.columns


def pair_products(sizes: Sizes, loss: Loss | None = None) -> Counter[Product]:
    """How often each product occurs in two consecutive updates, of which one steps the actor."""
    products = Counter[Product]()
    for _ in range(UPDATES_PER_PAIR):
        products.update(_critic_step(sizes))
        if loss is not None:
            products.update(_auxiliary_step(sizes, loss.canonical()))
    products.update(_actor_step(sizes))
    return products


def pair_flops(products: Mapping[Product, int]) -> int:
    """Floating-point operations of all the products."""
    return sum(product.flops * count for product, count in products.items())


def _critic_step(sizes: Sizes) -> list[Product]:
    return [
        # The actor and the target critics on the next observations, without gradients.
        *_encoder_forward(sizes, sizes.batch),
        *_actor_forward(sizes),
        *_encoder_forward(sizes, sizes.batch),
        *_critics_forward(sizes),
        # The critics on the observations, and back through the encoder.
        *_encoder_forward(sizes, sizes.batch),
        *_critics_forward(sizes),
        *_critics_weights(sizes),
        *_critics_inputs(sizes, needed=sizes.features),
        *_encoder_backward(sizes, sizes.batch),
    ]


def _actor_step(sizes: Sizes) -> list[Product]:
    return [
        # The critics' encoder and the actor's own; of these only the actor's head is trained.
        *_encoder_forward(sizes, sizes.batch),
        *_encoder_forward(sizes, sizes.batch),
        *_actor_forward(sizes),
        *_critics_forward(sizes),
        *_critics_inputs(sizes, needed=sizes.action),
        *_actor_backward(sizes),
        *_weights(sizes.batch, sizes.features, sizes.features),
    ]


def _auxiliary_step(sizes: Sizes, loss: Loss) -> list[Product]:
    if loss.operator.similarity not in ("mse", "nmse"):
        raise ValueError(f"the operator is {loss.operator.similarity}, but only those without products are derived")
    batch, hidden = sizes.batch, PREDICTOR_HIDDEN
    widths = {"s": sizes.features, "a": sizes.action, "r": 1}
    source = sum(widths[element.kind] for element in loss.source_elements)
    target = sum(widths[element.kind] for element in loss.target_elements)
    source_states = sum(element.kind == "s" for element in loss.source_elements)
    target_states = sum(element.kind == "s" for element in loss.target_elements)
    products = [
        *_forward(batch, source, hidden),
        *_forward(batch, hidden, target),
        *_weights(batch, hidden, target),
        *_inputs(batch, hidden, target),
        *_weights(batch, source, hidden),
    ]
    if target_states:
        products += _encoder_forward(sizes, batch * target_states)
    if source_states:
        products += _encoder_forward(sizes, batch * source_states)
        products += _inputs(batch, source_states * sizes.features, hidden)
        products += _encoder_backward(sizes, batch * source_states)
    return products


def _encoder_forward(sizes: Sizes, batch: int) -> list[Product]:
    return [*_forward(batch, sizes.observation, DENSE_WIDTH), *_forward(batch, sizes.features, sizes.features)]


def _encoder_backward(sizes: Sizes, batch: int) -> list[Product]:
    return [
        *_weights(batch, sizes.features, sizes.features),
        # Of what the head reads, only the dense layer's units are trained: the rest is the observation itself.
        *_inputs(batch, DENSE_WIDTH, sizes.features),
        *_weights(batch, sizes.observation, DENSE_WIDTH),
    ]


def _actor_layers(sizes: Sizes) -> list[tuple[int, int]]:
    return [(sizes.features, sizes.hidden), (sizes.hidden, sizes.hidden), (sizes.hidden, 2 * sizes.action)]


def _actor_forward(sizes: Sizes) -> list[Product]:
    return [product for inputs, outputs in _actor_layers(sizes) for product in _forward(sizes.batch, inputs, outputs)]


def _actor_backward(sizes: Sizes) -> list[Product]:
    return [
        product
        for inputs, outputs in _actor_layers(sizes)
        for product in (*_weights(sizes.batch, inputs, outputs), *_inputs(sizes.batch, inputs, outputs))
    ]


def _critic_layers(sizes: Sizes) -> list[tuple[int, int]]:
    return [(sizes.features + sizes.action, sizes.hidden), (sizes.hidden, sizes.hidden)]


def _critics_forward(sizes: Sizes) -> list[Product]:
    return [
        product
        for inputs, outputs in _critic_layers(sizes)
        for product in _forward(sizes.batch, inputs, outputs, copies=CRITICS)
    ]


def _critics_weights(sizes: Sizes) -> list[Product]:
    return [
        product
        for inputs, outputs in _critic_layers(sizes)
        for product in _weights(sizes.batch, inputs, outputs, copies=CRITICS)
    ]


def _critics_inputs(sizes: Sizes, *, needed: int) -> list[Product]:
    return [
        *_inputs(sizes.batch, sizes.hidden, sizes.hidden, copies=CRITICS),
        *_inputs(sizes.batch, needed, sizes.hidden, copies=CRITICS),
    ]


def _forward(batch: int, inputs: int, outputs: int, copies: int = 1) -> list[Product]:
    """A linear layer's output: (batch, inputs) x (inputs, outputs)."""
    return [Product(batch, inputs, outputs, copies)]


def _weights(batch: int, inputs: int, outputs: int, copies: int = 1) -> list[Product]:
    """The gradient of a linear layer's weights: (inputs, batch) x (batch, outputs)."""
    return [Product(inputs, batch, outputs, copies)]


def _inputs(batch: int, inputs: int, outputs: int, copies: int = 1) -> list[Product]:
    """The gradient of a linear layer's inputs: (batch, outputs) x (outputs, inputs)."""
    return [Product(batch, outputs, inputs, copies)]


def prepare(products: Mapping[Product, int]) -> Callable[[], None]:
    """A function that does all the products, each as often as it occurs, into outputs made in advance.

    Products of one shape share their operands, and these lie in memory as this machine multiplies them fastest: narrow
    products differ by a factor of two there, wide ones hardly.
    """
    generator = torch.Generator().manual_seed(0)
    calls = [(min(_layouts(product, generator), key=quickest), count) for product, count in products.items()]

    def run() -> None:
        for call, count in calls:
            for _ in range(count):
                call()

    return run


def _layouts(product: Product, generator: torch.Generator) -> list[Callable[[], object]]:
    """The product with both operands by rows, and with either of them by columns."""
    copies = (product.copies,) if product.copies > 1 else ()
    left = torch.randn(*copies, product.rows, product.inner, generator=generator)
    right = torch.randn(*copies, product.inner, product.columns, generator=generator)
    output = torch.empty(*copies, product.rows, product.columns)
    multiply = torch.bmm if copies else torch.mm
    operands = [(left, right), (_by_columns(left), right), (left, _by_columns(right))]
    return [functools.partial(multiply, *pair, out=output) for pair in operands]


def _by_columns(matrix: Tensor) -> Tensor:
    return matrix.mT.contiguous().mT


def quickest(call: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of a few runs, in seconds; the first also warms up."""
    return min(timeit.repeat(call, number=1, repeat=repeats))
