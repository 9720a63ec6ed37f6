"""Agents, and encoders, by name: those that there are, and those of a user."""

import io
import sys

import pytest
import torch
from gymnasium import spaces
from torch import nn

from a2ls._errors import BadInput
from a2ls.agents import (
    SAC,
    Agent,
    AgentConfig,
    AgentSpec,
    SACConfig,
    agent_spec,
    agent_specs,
    make_agent,
    optimizer_step,
    register_agent,
)
from helpers.agents import ACTIONS, OBSERVATION, SMALL, WINNER, changed, learn, snapshot

pytestmark = pytest.mark.usefixtures("_registries_as_they_were")

MODULE = """
from dataclasses import dataclass

import torch
from torch import nn

from a2ls.agents import Agent, AgentConfig, AgentSpec, register_agent
from a2ls.auxiliary import Encoder

@dataclass(frozen=True)
class MineConfig(AgentConfig):
    gain: float = 2.0

class Mine(Agent):
    def __init__(self, observation_shape, action_space, config, loss, *, seed, device):
        super().__init__()
        self.given = observation_shape, action_space, config, loss, seed, device

register_agent(AgentSpec("mine", MineConfig, lambda: Mine, discrete=True))

def encoder(shape):
    return Encoder(nn.Linear(*shape, 5, bias=False), nn.Tanh(), 5)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module of one's own in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    (tmp_path / "my_agents.py").write_text(MODULE)
    yield "my_agents"
    sys.modules.pop("my_agents", None)


class Counter(Agent):
    """The least that learns: a number that follows the rewards, with noise of its own."""

    def __init__(self, seed=0):
        super().__init__()
        self.value = nn.Parameter(torch.zeros(()))
        self.optimizer = torch.optim.Adam([self.value], 0.1)
        self.noise = torch.Generator().manual_seed(seed)

    def act(self, obs, *, deterministic):
        return self.value.detach() + torch.randn(len(obs), generator=self.noise) * (not deterministic)

    def update(self, batch):
        loss = (self.value - batch).square() + torch.randn((), generator=self.noise) * self.value
        optimizer_step(self.optimizer, loss)
        return {"loss": loss.detach()}


def test_an_agent_of_one_s_own_keeps_its_optimisers_and_generators_in_its_state():
    agent, other = Counter(), Counter(seed=1)
    for _ in range(3):
        agent.update(torch.tensor(4.0))
    assert agent.get_extra_state().keys() == {"optimizer", "noise"}
    file = io.BytesIO()
    torch.save(agent.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for _ in range(3):
        assert torch.equal(agent.update(torch.tensor(4.0))["loss"], other.update(torch.tensor(4.0))["loss"])
    assert torch.equal(agent.act(torch.zeros(3), deterministic=False), other.act(torch.zeros(3), deterministic=False))
    assert torch.equal(agent.value, other.value)
    assert agent.schedule(7) == {}


def test_sac_is_made_as_the_class_makes_it():
    agents = [
        make_agent("sac", (OBSERVATION,), ACTIONS, SACConfig(**SMALL), WINNER, seed=3),
        SAC((OBSERVATION,), ACTIONS, SACConfig(**SMALL), WINNER, seed=3),
    ]
    assert type(agents[0]) is SAC
    assert changed(*map(snapshot, agents)) == set()
    assert agents[0].auxiliary.loss == WINNER.canonical()
    spec = agent_spec("sac")
    assert spec.config is SACConfig
    assert spec in agent_specs()
    assert list(spec.all_baselines()) == ["sac", "sac-identity", "sac-no-aug", "curl", "rad", "drq"]


def test_actions_of_the_wrong_kind_are_refused_with_the_agents_that_there_are():
    with pytest.raises(
        BadInput, match=r"^the actions are discrete \(Discrete\(3\)\), but the agent sac needs cont"
    ) as e:
        make_agent("sac", (4,), spaces.Discrete(3), SACConfig())
    assert ("for these there is" in str(e.value)) == any(spec.discrete for spec in agent_specs())
    register_agent(AgentSpec("chooser", AgentConfig, lambda: Agent, discrete=True))
    with pytest.raises(BadInput, match=r"; for these there is .*chooser$"):
        make_agent("sac", (4,), spaces.Discrete(3), SACConfig())
    with pytest.raises(BadInput, match=r"actions are continuous .* the agent chooser needs discrete .* there is sac"):
        make_agent("chooser", (4,), ACTIONS, AgentConfig())


def test_settings_of_another_agent_and_other_spaces_are_refused():
    with pytest.raises(BadInput, match="the settings are a AgentConfig, but the agent sac has SACConfig"):
        make_agent("sac", (OBSERVATION,), ACTIONS, AgentConfig())
    with pytest.raises(BadInput, match=r"the actions are MultiDiscrete\(\[2 3\]\), but agents choose from"):
        make_agent("sac", (OBSERVATION,), spaces.MultiDiscrete([2, 3]), SACConfig())


def test_an_unknown_agent_gets_the_nearest_or_all_there_are():
    with pytest.raises(BadInput, match=r"no agent 'sacc': did you mean sac\?, or module:name of one that a module"):
        agent_spec("sacc")
    with pytest.raises(BadInput, match=r"no agent 'xyz': allowed are .*sac"):
        agent_spec("xyz")
    with pytest.raises(BadInput, match=r"The module 'nowhere' of the agent 'nowhere:mine' cannot be imported"):
        agent_spec("nowhere:mine")


def test_an_agent_of_a_module_in_the_current_folder_is_found(module):
    space = spaces.Discrete(3)
    config = agent_spec(f"{module}:mine").settings("fast", None)
    assert config.gain == 2.0
    agent = make_agent(f"{module}:mine", (4,), space, config, WINNER, seed=5)
    assert agent.given == ((4,), space, config, WINNER, 5, "cpu")
    assert list(agent_spec("mine").all_baselines()) == ["mine"]
    with pytest.raises(BadInput, match=r"no agent 'other'"):
        agent_spec(f"{module}:other")


def test_an_encoder_of_a_module_in_the_current_folder_is_trained(module):
    agent = SAC(
        (OBSERVATION,), ACTIONS, SACConfig(**SMALL, encoder=f"{module}:encoder", actor_encoder="shared"), WINNER
    )
    before = snapshot(agent)
    learn(agent, 0, 1, WINNER)
    assert agent.encoder.feature_dim == 5
    assert changed(before, snapshot(agent)) >= {"encoder", "target_encoder", "auxiliary"}
    with pytest.raises(BadInput, match=r"The module 'nowhere' of the encoder 'nowhere:encoder' cannot be imported"):
        SAC((OBSERVATION,), ACTIONS, SACConfig(encoder="nowhere:encoder"))
    with pytest.raises(BadInput, match=f"{module} has no function nothing that returns an Encoder"):
        SAC((OBSERVATION,), ACTIONS, SACConfig(encoder=f"{module}:nothing"))
