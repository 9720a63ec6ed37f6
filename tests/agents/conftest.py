import pytest
import torch


@pytest.fixture
def _double():
    """All in float64, so that a comparison after several Adam steps is one of formulas and not of rounding."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
