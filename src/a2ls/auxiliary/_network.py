"""Networks that hand out their gradients."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Gradients = list[Tensor]
"""Of all parameters of a network, in their order and with their layout in memory."""


class Network(nn.Module):
    """A module that can be asked for its gradients, in place of leaving them in its parameters.

    What is here serves any module, by autograd. Small networks override both methods with their formulas, for use in
    inference mode: the graph that autograd builds, walks and throws away takes as long as their products.
    """

    def trace(self, x: Tensor) -> tuple[Tensor, Any]:
        """What the network makes of x, without a graph, and what `gradients` needs to know about the way."""
        with torch.inference_mode(False), torch.enable_grad():
            if x.is_inference():
                x = x.clone()  # What inference mode has made can be in no graph.
            x = x.detach().requires_grad_(x.is_floating_point())
            output = self(x)
        return output.detach(), (x, output)

    def gradients(self, trace: Any, above: Tensor, *, below: bool = True) -> tuple[Gradients, Tensor | None]:
        """The gradients of the parameters, and the one of x unless `below` says that nobody needs it.

        Args:
            trace: From `trace`.
            above: The gradient of the output, of its shape.
            below: Whether the gradient of x is wanted.
        """
        x, output = trace
        parameters = list(self.parameters())
        found = torch.autograd.grad(output, [*parameters, x] if below else parameters, above)
        return [_laid_out_like(p, g) for p, g in zip(parameters, found, strict=False)], found[-1] if below else None


def _laid_out_like(parameter: Tensor, gradient: Tensor) -> Tensor:
    return gradient if gradient.stride() == parameter.stride() else torch.empty_like(parameter).copy_(gradient)


def relu_gradient(above: Tensor, output: Tensor) -> Tensor:
    """The gradient of what a ReLU was given, from that of its output: it passes where the output is not zero."""
    gradient: Tensor = torch.ops.aten.threshold_backward.default(above, output, 0)
    return gradient


def relu_gradient_(above: Tensor, output: Tensor) -> Tensor:
    """The same in place."""
    torch.ops.aten.threshold_backward.grad_input(above, output, 0, grad_input=above)
    return above


class Identity(Network):
    """Hands on what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        """The same x."""
        return x

    def trace(self, x: Tensor) -> tuple[Tensor, None]:
        """The same x."""
        return x, None

    def gradients(self, trace: None, above: Tensor, *, below: bool = True) -> tuple[Gradients, Tensor | None]:  # noqa: ARG002
        """No gradients of its own, and what came from above."""
        return [], above if below else None


class Perceptron(Network):
    """Linear layers of these sizes, with ReLU between them."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        linears = [nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes)]
        self.layers = nn.ModuleList(linears)
        # Where an update finds them without the lookup of `nn.Module`, which takes as long as a small product.
        self._tensors = [(linear.weight, linear.bias) for linear in linears]

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (B, last size) for inputs (B, first size)."""
        return self.trace(x)[0]

    def trace(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The same, and the inputs of every layer."""
        *hidden, (last_weight, last_bias) = self._tensors
        inputs = [x]
        for weight, bias in hidden:
            # In place: a layer does not need its output for its gradient.
            inputs.append(F.linear(inputs[-1], weight, bias).relu_())
        return F.linear(inputs[-1], last_weight, last_bias), inputs

    def gradients(self, trace: list[Tensor], above: Tensor, *, below: bool = True) -> tuple[Gradients, Tensor | None]:
        """Layer by layer from the last."""
        found: Gradients = []
        for (weight, _), x in zip(self._tensors[:0:-1], trace[:0:-1], strict=True):
            found += above.sum(0), torch.mm(above.T, x)
            above = relu_gradient_(torch.mm(above, weight), x)
        found += above.sum(0), torch.mm(above.T, trace[0])
        return found[::-1], torch.mm(above, self._tensors[0][0]) if below else None


class RectifiedPerceptron(Perceptron):
    """The same with a ReLU after the last layer, too."""

    def trace(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The same, with the inputs of every layer and the output."""
        output, inputs = super().trace(x)
        return output.relu_(), [*inputs, output]

    def gradients(self, trace: list[Tensor], above: Tensor, *, below: bool = True) -> tuple[Gradients, Tensor | None]:
        """Through the last ReLU, and on as without it."""
        return super().gradients(trace[:-1], relu_gradient(above, trace[-1]), below=below)
