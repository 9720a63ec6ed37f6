"""What an auxiliary loss is: elements, masks, operators, text form, validity, patterns, and a zoo of losses.

Pure Python, without torch or NumPy. A loss predicts some elements of a short trajectory (the target) from
others (the source):

    >>> from a2ls.space import Loss, named_loss
    >>> loss = Loss.parse("s0 a0 -> s1 | mse")
    >>> loss == named_loss("forward-dynamics")
    True
    >>> loss.paper()
    '{s_t, a_t} -> {s_{t+1}}'
"""

from a2ls.space._elements import (
    KINDS,
    MSE,
    OPERATORS,
    SIMILARITIES,
    Element,
    Kind,
    Operator,
    Similarity,
    register_similarity,
)
from a2ls.space._loss import Loss
from a2ls.space._patterns import PATTERNS, contains, patterns_of
from a2ls.space._text import NO_PREDICTOR
from a2ls.space._validity import (
    ANY_HORIZON,
    LAYOUTS,
    MAX_HORIZON,
    InvalidLoss,
    Layout,
    have_one_width,
    mask_length,
    space_size,
)
from a2ls.space._zoo import (
    BadLossFile,
    NamedLoss,
    UnknownLoss,
    describe,
    find_loss,
    named_loss,
    named_losses,
    names_of,
    zoo,
)

__all__ = [
    "ANY_HORIZON",
    "KINDS",
    "LAYOUTS",
    "MAX_HORIZON",
    "MSE",
    "NO_PREDICTOR",
    "OPERATORS",
    "PATTERNS",
    "SIMILARITIES",
    "BadLossFile",
    "Element",
    "InvalidLoss",
    "Kind",
    "Layout",
    "Loss",
    "NamedLoss",
    "Operator",
    "Similarity",
    "UnknownLoss",
    "contains",
    "describe",
    "find_loss",
    "have_one_width",
    "mask_length",
    "named_loss",
    "named_losses",
    "names_of",
    "patterns_of",
    "register_similarity",
    "space_size",
    "zoo",
]
