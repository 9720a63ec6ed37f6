"""One thread for every test: results repeat bit for bit, and test processes do not get in each other's way."""

import torch

torch.set_num_threads(1)
