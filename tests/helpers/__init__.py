"""What several tests share, one module for each kind; `tests/conftest.py` puts it on the path of every test.

losses          random losses, and their operators in loops
toy_envs        environments of a few steps, with what may be wrong with one
agents          agents of a few units, what they learn from, and what of them changed
sac_reference   SAC in formulas of its own
trainings       trainings of a fraction of a second
engines         an engine that trains nothing
searches        searches that never took place, bred or written down
comparisons     benchmarks with scores that a test chooses, and comparisons of them
landscapes      loss landscapes that are functions of two numbers
figures         what a browser gets of a figure
processes       programs and commands in processes of their own
"""
