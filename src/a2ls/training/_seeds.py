"""Independent seeds for the parts of one run."""

from __future__ import annotations

import numpy as np

from a2ls._errors import BadInput

HIGHEST_SEED = 2**32 - 1
"""As NumPy and Gymnasium have it."""

# Which part of a run a seed is for. The numbers enter the seeds: changing one changes every curve.
AGENT, EXPLORATION, REPLAY, TRAINING_EPISODE, EVALUATION_EPISODE, VIDEO, PLAYED_EPISODE = range(7)


def derived_seed(seed: int, *path: int) -> int:
    """A seed in [0, 2^31) for the part of the run `seed` that `path` names.

    Seeding each part, and each episode, from its place in the run instead of from one stream means that nothing that
    happens in one part (another number of evaluation episodes, a resume) changes the randomness of the others.
    """
    return int(np.random.SeedSequence((seed, *path)).generate_state(1)[0] >> 1)


def require_seed(seed: int) -> None:
    """Refuse a seed that not everything here can be seeded with.

    Raises:
        BadInput: If it is negative, or too large.
    """
    if not 0 <= seed <= HIGHEST_SEED:
        raise BadInput(f"seed is {seed}, but must be from 0 to {HIGHEST_SEED}")
