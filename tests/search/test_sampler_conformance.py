"""Optuna's own test suite for samplers."""

import pytest
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from a2ls.search import A2LSSampler

# Small, so that stages turn over within a test.
POPULATION = 4


class TestGenerational(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: A2LSSampler(POPULATION, mode="generational")


class TestSteady(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: A2LSSampler(POPULATION, mode="steady")
