"""What the settings of several agents check: that encoder, observations and auxiliary loss go together."""

from __future__ import annotations

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls.auxiliary import IMAGE_ENCODERS, MAX_ENCODER_LAYERS
from a2ls.space import Loss, have_one_width


def require_known_encoder(encoder: str, layers: int) -> None:
    """Check name and layers of an encoder; those of `module:function` are a matter of its own.

    Raises:
        BadInput: If there is no such encoder, or it cannot have so many layers.
    """
    if ":" in encoder:
        return
    if encoder not in MAX_ENCODER_LAYERS:
        hint = did_you_mean(nearest(encoder, MAX_ENCODER_LAYERS)) or f"allowed are {', '.join(MAX_ENCODER_LAYERS)}"
        raise BadInput(f"encoder is {encoder!r}: {hint}, or module:function of your own")
    most = MAX_ENCODER_LAYERS[encoder]
    if not 1 <= layers <= most:
        raise BadInput(f"encoder_layers is {layers}, but must be from 1 to {most} for {encoder}")


def require_suitable_encoder(encoder: str, *, pixels: bool) -> None:
    """Check that an encoder is for observations of this kind; one of the user's own may be for either.

    Raises:
        BadInput: If it is not.
    """
    if ":" not in encoder and pixels != (encoder in IMAGE_ENCODERS):
        seen = "pixels" if pixels else "vectors"
        *others, last = (name for name in MAX_ENCODER_LAYERS if (name in IMAGE_ENCODERS) == pixels)
        suits = f"{', '.join(others)} or {last}"
        raise BadInput(f"encoder is {encoder!r}, but the agent sees {seen}: it must be {suits}")


def require_suitable_loss(loss: Loss, *, auxiliary_batch: str, predictor: str) -> None:
    """Check that a loss can be learned from such a batch, by such a predictor.

    Raises:
        BadInput: If it cannot.
    """
    source, target = loss.canonical().source_elements, loss.canonical().target_elements
    if auxiliary_batch != "own" and {*map(str, source), *map(str, target)} != {"s0"}:
        raise BadInput(
            f"auxiliary_batch is {auxiliary_batch!r}, which is for losses of one state alone, but the loss is {loss}"
        )
    if predictor == "none" and not have_one_width(source, target):
        raise BadInput(
            f"predictor is 'none', for losses with as many states, actions and rewards on both sides, but the loss "
            f"is {loss}"
        )
