"""The sampler of A2LS as OptunaHub loads it; the code is in `a2ls.search`."""

from a2ls.search import A2LSSampler
from a2ls.search import SearchSpace
from a2ls.search import suggest_loss


__all__ = ["A2LSSampler", "SearchSpace", "suggest_loss"]
