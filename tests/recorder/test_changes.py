"""What has changed since a recording, in Python or in memory, is seen. The judge is the same agent, run by PyTorch."""

import copy
import sys
import threading
from functools import partial

import pytest
import torch
from torch import nn

from a2ls.recorder import Recorded


class Agent(nn.Module):
    """Its update reads all that an agent's may: modules, a generator, numbers, an optimizer and its state."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.actor, self.critic = nn.Linear(4, 4), nn.Linear(4, 1)
        self.gain = nn.Parameter(torch.rand(8), requires_grad=False)
        self.log_alpha = nn.Parameter(torch.tensor(0.1))
        self.optimizer = torch.optim.Adam([p for p in self.parameters() if p.requires_grad], lr=1e-2, fused=True)
        self.generator = torch.Generator().manual_seed(1)
        self.target_entropy, self.bonuses, self.settings = -4.0, [], Settings(1.0)

    def update(self, x):
        actions = torch.tanh(self.actor(x) + torch.randn(x.shape, generator=self.generator))
        values = self.critic(actions) * self.gain.sum() * self.settings.scale - self.target_entropy
        loss = values.square().mean() * self.log_alpha.exp() + sum(self.bonuses)
        self.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def moments(self):
        return self.optimizer.state[self.actor.weight]


class Settings:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


def assert_same(agent, plain):
    for ours, theirs in zip(agent.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def updates(agent, plain, update, count=4):
    """The same updates, recorded and by PyTorch."""
    for i in range(count):
        x = torch.full((3, 4), 0.1 * i)
        torch.testing.assert_close(update(x), plain.update(x), rtol=1e-4, atol=1e-5)
        assert_same(agent, plain)


def replace_actor(agent):
    agent.actor = copy.deepcopy(agent.actor)
    agent.actor.weight.data.mul_(2)


def replace_moments(agent):
    agent.optimizer.state[agent.actor.weight] = {key: torch.full_like(v, 9.0) for key, v in agent.moments().items()}


def halve(agent):
    agent.gain.data = agent.gain.data[:4]


def reinterpret(agent):
    agent.gain.data = agent.gain.data.view(torch.int32)


def transpose(agent):
    agent.actor.weight.data = agent.actor.weight.data.t()


PYTHON = {
    "module": replace_actor,
    "generator": lambda agent: setattr(agent, "generator", torch.Generator().manual_seed(9)),
    "number": lambda agent: setattr(agent, "target_entropy", 3.0),
    "slot": lambda agent: setattr(agent.settings, "scale", 0.5),
    "list": lambda agent: agent.bonuses.append(1.0),
    "rate": lambda agent: agent.optimizer.param_groups[0].update(lr=0.1),
    "betas": lambda agent: agent.optimizer.param_groups[0].update(betas=(0.1, 0.2)),
    "steps": lambda agent: agent.moments().update(step=torch.tensor(100.0)),
    "steps in place": lambda agent: agent.moments()["step"].fill_(100),
    "moment": lambda agent: agent.moments().update(exp_avg=torch.ones(4, 4)),
    "moments": replace_moments,
    "no moments": lambda agent: agent.optimizer.state.clear(),
    "hook": lambda agent: agent.actor.weight.register_hook(lambda gradient: gradient * -1),
}
MEMORY = {
    "transposed": transpose,
    "half": halve,
    "first element only": lambda agent: setattr(agent.gain, "data", agent.gain.data.as_strided((8,), (0,))),
    "other type": reinterpret,
    "gradient taken away": lambda agent: agent.actor.weight.grad.untyped_storage().resize_(0),
    "moment moved": lambda agent: setattr(agent.moments()["exp_avg"], "data", torch.ones(4, 4)),
}


@pytest.mark.parametrize("given", [True, False], ids=["state given", "state found"])
@pytest.mark.parametrize("change", (PYTHON | MEMORY).values(), ids=(PYTHON | MEMORY).keys())
def test_an_update_after_a_change_is_that_of_plain_pytorch(change, given):
    agent, plain = Agent(), Agent()
    update = Recorded(agent.update, agent if given else None, required=True)
    updates(agent, plain, update)
    for each in (agent, plain):
        change(each)
    updates(agent, plain, update)


def test_the_variables_of_a_function_are_its_state():
    scale, weight, numbers = 2.0, torch.ones(3), {"shift": 1.0}

    def function(x, numbers=numbers):
        return x * weight * scale + numbers["shift"]

    recorded = Recorded(partial(function), required=True)
    assert torch.equal(recorded(torch.ones(3)), torch.full((3,), 3.0))
    scale = 5.0
    assert torch.equal(recorded(torch.ones(3)), torch.full((3,), 6.0))
    numbers["shift"] = 2.0
    assert torch.equal(recorded(torch.ones(3)), torch.full((3,), 7.0))
    weight = torch.full((3,), 2.0)
    assert torch.equal(recorded(torch.ones(3)), torch.full((3,), 12.0))


TAKEN = {"parameter": lambda agent: agent.log_alpha, "moment": lambda agent: agent.moments()["exp_avg"]}


@pytest.mark.parametrize("size", [0, 0.5], ids=["all", "half"])
@pytest.mark.parametrize("find", TAKEN.values(), ids=TAKEN.keys())
def test_memory_that_was_taken_away_is_an_error_and_not_the_end_of_the_process(find, size):
    agent, plain = Agent(), Agent()
    update = Recorded(agent.update, agent, required=True)
    updates(agent, plain, update)
    storage = find(agent).untyped_storage()
    storage.resize_(int(storage.nbytes() * size))
    for _ in range(20):  # However often: an error is no reason to leave it to PyTorch.
        with pytest.raises(RuntimeError, match=r"bytes too small: it was resized"):
            update(torch.zeros(3, 4))


def test_threads_that_share_an_agent_wait_for_each_other():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    # The sum is a call of PyTorch, in the midst of which another thread may go on.
    act = Recorded(lambda x: net(x).detach().cumsum(-1), net, required=True)
    inputs = torch.randn(4, 200, 1, 8)
    expected = [[act(x) for x in own] for own in inputs]
    found = [[], [], [], []]
    threads = [threading.Thread(target=lambda i=i: found[i].extend(map(act, inputs[i]))) for i in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(torch.stack(ours), torch.stack(theirs))


def test_no_thread_sees_what_another_records_and_undoes():
    weight = torch.zeros(3)
    inside, go_on, seen = threading.Event(), threading.Event(), []

    def update(x):
        weight.add_(x)
        inside.set()
        assert go_on.wait(10)
        weight.add_(x)
        return weight.sum()

    act = Recorded(lambda: weight * 1, weight, required=True)
    recorded = Recorded(update, weight, required=True)
    act()
    recording = threading.Thread(target=recorded, args=(torch.ones(3),))
    recording.start()
    assert inside.wait(10)
    acting = threading.Thread(target=lambda: seen.append(act()))
    acting.start()
    acting.join(0.05)
    assert seen == []
    go_on.set()
    recording.join(10)
    acting.join(10)
    assert torch.equal(seen[0], torch.full((3,), 2.0))
