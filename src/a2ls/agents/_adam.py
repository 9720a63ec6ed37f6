"""Adam without the bookkeeping that costs as much as the step itself in networks of a few hundred units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class Adam:
    """Adam (Kingma & Ba) over one list of parameters: what `torch.optim.Adam(fused=True)` computes.

    That optimiser keeps a step counter per parameter and groups its tensors anew at each step; here one counter and
    lists made once serve all of them. The arithmetic is torch's own fused kernel.
    """

    def __init__(self, parameters: Sequence[Tensor], rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.parameters = list(parameters)
        self._rate = rate
        self._betas = betas
        self.first_moments = [torch.zeros_like(p) for p in self.parameters]
        self.second_moments = [torch.zeros_like(p) for p in self.parameters]
        self.steps = torch.zeros((), device=self.parameters[0].device)
        self._one = torch.ones_like(self.steps)  # As a number it would be converted to a tensor at each step.
        self._counters = [self.steps] * len(self.parameters)

    @property
    def rate(self) -> float:
        """How far a step goes. It cannot be changed: a tape of an update has it as it was."""
        return self._rate

    @property
    def betas(self) -> tuple[float, float]:
        """How slowly the moments change."""
        return self._betas

    def step(self, gradients: list[Tensor]) -> None:
        """Move every parameter against its gradient, which lies in memory as the parameter does.

        For use without autograd, as in inference mode.
        """
        self.steps += self._one
        torch._fused_adam_(
            self.parameters,
            gradients,
            self.first_moments,
            self.second_moments,
            [],
            self._counters,
            lr=self._rate,
            beta1=self._betas[0],
            beta2=self._betas[1],
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Any]:
        """The counter and the moments."""
        return {"steps": self.steps, "first": self.first_moments, "second": self.second_moments}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.steps.copy_(state["steps"])
        for mine, saved in (
            (self.first_moments, state["first"]),
            (self.second_moments, state["second"]),
        ):
            for moment, value in zip(mine, saved, strict=True):
                moment.copy_(value)
