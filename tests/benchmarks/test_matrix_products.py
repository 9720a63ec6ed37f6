import pytest
from contestants import RandomData, our_sac
from matrix_products import UPDATES_PER_PAIR, Sizes, pair_flops, pair_products
from measuring import count_flops

from a2ls.space import named_loss


@pytest.mark.parametrize("name", [None, "a2-winner", "forward-dynamics", "reward-prediction"])
@pytest.mark.parametrize("sizes", [Sizes(256, 128), Sizes(64, 32, observation=5, action=2)], ids=str)
def test_the_bound_has_just_the_products_of_the_real_update(sizes, name):
    loss = None if name is None else named_loss(name)
    derived = pair_flops(pair_products(sizes, loss)) / UPDATES_PER_PAIR
    counted = count_flops(our_sac(sizes, RandomData.draw(sizes, transitions=1_000), "ours", loss))
    # The real update also computes a few gradients that nothing needs: more of the whole, the smaller the layers.
    assert 0.96 * counted < derived <= counted
