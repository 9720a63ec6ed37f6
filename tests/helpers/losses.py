"""Random losses, and the operators of the paper's appendix C.2, sample by sample."""

import torch
from hypothesis import strategies as st

from a2ls.space import OPERATORS, Loss


@st.composite
def any_loss(draw, max_horizon=10):
    """Valid or not."""
    horizon = draw(st.integers(1, max_horizon))
    bits = st.lists(st.booleans(), min_size=3 * horizon + 3, max_size=3 * horizon + 3).map(tuple)
    return Loss(horizon, draw(bits), draw(bits), draw(st.sampled_from(OPERATORS)))


def valid_loss(max_horizon=10):
    return any_loss(max_horizon).filter(lambda loss: any(loss.source[::3]) and any(loss.target))


def by_hand(operator, y, y_hat, w=None):
    """The loss of predictions (B, D) against targets (B, D); `w` is the matrix of bilinear."""
    if operator.similarity in ("nmse", "cosine"):
        y, y_hat = ([row / row.square().sum().sqrt() for row in rows] for rows in (y, y_hat))
    total = 0.0
    for i in range(len(y)):
        if operator.similarity in ("mse", "nmse"):
            total = total + (y[i] - y_hat[i]).square().sum() / len(y[i])
            if operator.negatives:  # Its neighbour's target.
                total = total - (y[i] - y_hat[i - 1]).square().sum() / len(y[i])
            continue
        predicted = y[i] if operator.similarity != "bilinear" else (y[i][:, None] * w).sum(0)
        logits = [
            (predicted * y_hat[j]).sum() if operator.negatives or i == j else torch.tensor(0.0)
            for j in range(len(y_hat))
        ]
        total = total - (logits[i] - torch.stack([logit.double() for logit in logits]).logsumexp(0))
    return total / len(y)
