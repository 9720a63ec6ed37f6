"""Seeds of the parts of a run."""

from a2ls.training._seeds import AGENT, EVALUATION_EPISODE, EXPLORATION, REPLAY, TRAINING_EPISODE, VIDEO, derived_seed


def test_the_seeds_of_runs_and_their_parts_are_all_different():
    seeds = [
        derived_seed(seed, *path)
        for seed in range(10)
        for path in (
            (AGENT,),
            (EXPLORATION,),
            (REPLAY,),
            *((TRAINING_EPISODE, episode) for episode in range(200)),
            *((EVALUATION_EPISODE, point, episode) for point in range(5) for episode in range(10)),
            (VIDEO, 7),
        )
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 and isinstance(seed, int) for seed in seeds)


def test_a_seed_is_the_same_in_every_version():
    # Another value here means that no run of an earlier version can be repeated.
    assert derived_seed(0, AGENT) == 1484405855
    assert derived_seed(0, EXPLORATION) == 1982462498
    assert derived_seed(0, REPLAY) == 1570558271
    assert derived_seed(7, TRAINING_EPISODE, 12) == 889937399
    assert derived_seed(7, EVALUATION_EPISODE, 4, 9) == 1568653923
