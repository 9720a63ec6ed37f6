"""The patterns of the paper by name, and comparisons of groups by what they compare."""

FORWARD, INVERSE, REWARD = "forward-dynamics", "inverse-dynamics", "reward-prediction"
ACTION, STATE = "action-inference", "state-reconstruction"


def by_what(comparisons):
    return {each.what: each for each in comparisons}
