"""The inner loop: environment, replay buffer, update, evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from a2ls._errors import BadInput
from a2ls.agents import PRIORITIES, Metrics, ObjectiveConfig, make_agent
from a2ls.auxiliary import SequenceNeeds
from a2ls.envs import Action, AgentEnv, Observation, make_env
from a2ls.recorder import Recorded
from a2ls.space import Loss
from a2ls.training import _seeds as seeds
from a2ls.training._config import TrainConfig
from a2ls.training._curve import Curve, CurvePoint
from a2ls.training._evaluation import evaluate
from a2ls.training._job import TrainJob, parse_loss
from a2ls.training._objective import find_objective
from a2ls.training._policy import TrainedPolicy
from a2ls.training._presets import usual_config
from a2ls.training._replay_buffer import ReplayBuffer


def require_trainable(config: TrainConfig, *, render: bool = False) -> None:
    """Check that this machine has what a training needs, before anything is written for it.

    Raises:
        BadInput: If there would be no update, the device is not there, the environment cannot be used, or drawn, or the
            networks do not suit it.
    """
    if isinstance(config.agent, ObjectiveConfig):
        find_objective(config.agent.objective)
        return
    require_device(config.device)
    env = make_env(config.environment, render=render)
    env.close()
    config.require_updates()  # Its numbers mean nothing of an environment that is not there.
    try:
        make_agent(config.algorithm, env.observation_shape, env.action_space, config.agent)
    except BadInput:
        raise
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"the networks cannot be made, perhaps for their size: {reason}") from error


def require_device(name: str) -> None:
    """Check that this machine can train on a device.

    Raises:
        BadInput: If it cannot, naming the devices that it has.
    """
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available[name.partition(":")[0]]:
        there = ", ".join(device for device, yes in available.items() if yes)
        raise BadInput(f"device is {name!r}, which this machine or its PyTorch lacks; available: {there}")


OnEvaluation = Callable[[CurvePoint], Literal["stop"] | None]
Actions = NDArray[Any]

_FORMAT = 2
"""Of `state_dict`: counted up when another version could not go on from it."""


class Diverged(RuntimeError):
    """The networks of a run are no longer finite."""

    def __init__(self, step: int, metrics: dict[str, float], curve: Curve) -> None:
        broken = [f"{name} is {value}" for name, value in metrics.items() if not np.isfinite(value)]
        super().__init__(
            f"the run diverged at step {step:,}: the policy's action is not finite"
            + (f" ({', '.join(broken)})" if broken else "")
        )
        self.step = step
        self.curve = curve
        """The evaluations before it diverged."""


def require_format(state: dict[str, Any]) -> None:
    """Check that this version can read the state of a training.

    Raises:
        BadInput: If another version of this program has made it.
    """
    if state.get("format") != _FORMAT:
        raise BadInput("it was made by another version of a2ls")


@overload
def train(
    config: TrainConfig | str,
    loss: Loss | str | None = None,
    seed: int = 0,
    on_evaluation: OnEvaluation | None = None,
    *,
    steps: int | None = None,
    return_agent: Literal[False] = False,
) -> Curve: ...


@overload
def train(
    config: TrainConfig | str,
    loss: Loss | str | None = None,
    seed: int = 0,
    on_evaluation: OnEvaluation | None = None,
    *,
    steps: int | None = None,
    return_agent: Literal[True],
) -> tuple[Curve, TrainedPolicy]: ...


def train(
    config: TrainConfig | str,
    loss: Loss | str | None = None,
    seed: int = 0,
    on_evaluation: OnEvaluation | None = None,
    *,
    steps: int | None = None,
    return_agent: bool = False,
) -> Curve | tuple[Curve, TrainedPolicy]:
    """Train an agent with an auxiliary loss, or with none, and return its learning curve.

        >>> train("cheetah-run", loss="a2-winner", steps=20_000)

    The same arguments give the same curve, bit for bit, on one machine with one thread (`torch.set_num_threads(1)`).
    Nothing is written anywhere.

    Args:
        config: All settings, as `preset("fast", "cheetah-run")` gives them; or the name of an environment, for those
            of `a2ls train --env`.
        loss: The auxiliary loss, its name, text form or file; None for the plain agent.
        seed: Determines everything that is random.
        on_evaluation: Called with each point of the curve; the training ends there if it returns "stop".
        steps: Environment steps instead of those of the settings.
        return_agent: Whether to return the trained agent, too: `curve, agent = train(..., return_agent=True)`. It has
            `predict`, `evaluate` and `save`.

    Raises:
        BadInput: If there is no such environment or loss, or no update would be made.
        Diverged: If the networks are no longer finite; its `curve` has the evaluations until then.
    """
    loss = parse_loss(loss) if isinstance(loss, str) else loss
    config = usual_config(config, loss) if isinstance(config, str) else config
    config = config if steps is None else replace(config, steps=steps)
    config.require_updates()
    training = Training(config, loss, seed)
    try:
        curve = training.run(on_evaluation=on_evaluation)
        return (curve, training.trained_policy()) if return_agent else curve
    finally:
        training.close()


class Training:
    """A training that can be watched, saved at the start of any episode, and taken up again.

    `train` is all that most callers need.
    """

    def __init__(self, config: TrainConfig, loss: Loss | None, seed: int) -> None:
        require_device(config.device)
        self.config = config
        self.loss = loss
        self.seed = seed
        self._threads = torch.get_num_threads()
        self.env = make_env(config.environment, training=True)
        self._keep_threads()
        self.device = torch.device(config.device)
        self.agent = make_agent(
            config.algorithm,
            self.env.observation_shape,
            self.env.action_space,
            config.agent,
            loss,
            seed=seeds.derived_seed(seed, seeds.AGENT),
            device=config.device,
        )
        self._agent_act, self._agent_update = self.agent.act, self.agent.update
        if config.is_recorded:
            self._agent_act = Recorded(self.agent.act, state=self.agent)
            self._agent_update = Recorded(self.agent.update, state=self.agent)
        self._replay = config.agent.replay
        self.replay_buffer = ReplayBuffer(
            min(config.buffer_size, config.agent_steps),
            self.env.observation_shape,
            self.env.action_space,
            self.device,
            frames=config.environment.frames,
            replay=self._replay,
        )
        self.curve = Curve()
        self.agent_steps = 0
        self.episode = 0
        self._return = 0.0
        self.updates = 0
        self.updates_without_sequences = 0
        """Updates that left out the auxiliary loss because no episode was long enough for it."""
        self._needs = SequenceNeeds(loss) if loss is not None and config.agent.samples_sequences else None
        self._exploration = np.random.default_rng(seeds.derived_seed(seed, seeds.EXPLORATION))
        self._sampling = np.random.default_rng(seeds.derived_seed(seed, seeds.REPLAY))
        self._metrics: Metrics = {}
        self._evaluation_envs: list[AgentEnv] = []

    @property
    def step(self) -> int:
        """Environment steps taken so far."""
        return self.agent_steps * self.config.environment.action_repeat

    @property
    def finished(self) -> bool:
        """Whether all agent steps of the configuration are taken."""
        return self.agent_steps >= self.config.agent_steps

    @property
    def never_used_its_loss(self) -> bool:
        """Whether no update had the auxiliary loss, since no episode was as long as it needs."""
        return 0 < self.updates == self.updates_without_sequences

    @property
    def metrics(self) -> dict[str, float]:
        """The losses and other figures of the last updates."""
        return {name: float(value) for name, value in self._metrics.items()}

    def run(
        self,
        *,
        on_evaluation: OnEvaluation | None = None,
        on_step: Callable[[Training], None] | None = None,
        on_episode: Callable[[Training], None] | None = None,
        on_episode_end: Callable[[float], None] = lambda _: None,
        on_evaluation_step: Callable[[], None] = lambda: None,
    ) -> Curve:
        """Train to the end from wherever the training stands, and return the curve.

        Args:
            on_evaluation: Called with each point of the curve; the training ends there if it returns "stop".
            on_step: Called after each agent step and its update.
            on_episode: Called before each episode that starts from its seed alone, which not every life of a game does:
                the moments at which `state_dict` may be taken.
            on_episode_end: Called with the return of each episode of the training, as the agent saw it: of one life of
                an Atari game, with clipped rewards.
            on_evaluation_step: Called after each step of an evaluation.

        Raises:
            UnsuitableEnvironment: If the environment does what no agent can learn from.
        """
        evaluation_agent_steps = self.config.evaluation_agent_steps()
        self._threads = torch.get_num_threads()
        ended = True
        self.env.leave_game()  # A training that is taken up between two lives begins as a restored one does.
        while not self.finished:
            if ended:
                if on_episode is not None and self.env.begins_anew:
                    on_episode(self)
                episode_seed = seeds.derived_seed(self.seed, seeds.TRAINING_EPISODE, self.episode)
                obs, _ = self.env.reset(seed=episode_seed)
                self._return = 0.0
            obs, ended = self._take_step(obs)
            if ended:
                on_episode_end(self._return)
            if self.agent_steps > self.config.learning_starts:
                self._update()
            if on_step is not None:
                on_step(self)
            if self.agent_steps == evaluation_agent_steps[len(self.curve.points)]:
                point = self._evaluate(on_evaluation_step)
                if on_evaluation is not None and on_evaluation(point) == "stop":
                    self.episode += not ended  # An episode broken off here is over: none goes on under its number.
                    break
        return self.curve

    def _take_step(self, obs: Observation) -> tuple[Observation, bool]:
        """Take one agent step; returns the next observation and whether the episode ended with it."""
        if self.agent_steps < self.config.learning_starts:
            action = self._random_action()
        else:
            action = self._act(obs[None], deterministic=False)[0]
        next_obs, reward, terminated, truncated, _ = self.env.step(action)
        self.replay_buffer.add(obs, action, reward, next_obs, terminated=terminated, episode=self.episode)
        self._return += reward
        self.agent_steps += 1
        self.episode += terminated or truncated
        return next_obs, terminated or truncated

    def _random_action(self) -> Action:
        space = self.env.action_space
        if isinstance(space, spaces.Discrete):
            return int(self._exploration.integers(space.n))
        return self._exploration.uniform(-1, 1, space.shape).astype(np.float32)

    def _keep_threads(self) -> None:
        """An environment may have changed how many threads PyTorch has, and with them how all numbers are rounded."""
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)

    def _update(self) -> None:
        self._keep_threads()
        drawn = self.replay_buffer.draw(self.config.batch_size, self._sampling)
        batch = self.replay_buffer.transitions(drawn, self._beta())
        sequences = None
        if self._needs is not None:
            batch_size = self.config.auxiliary_batch_size or self.config.batch_size
            sequences = self.replay_buffer.sample_sequences(batch_size, self._needs, self._sampling)
            self.updates_without_sequences += sequences is None
        metrics = self._agent_update(batch, sequences, **self.agent.schedule(self.updates))
        if PRIORITIES in metrics:
            priorities = metrics.pop(PRIORITIES)
            if self._replay.priority_exponent:
                self.replay_buffer.set_priorities(drawn, priorities.cpu().numpy())
        self._metrics |= metrics
        self.updates += 1

    def _beta(self) -> float:
        """How far importance weights correct for priorities: from what the agent says at the start, to 1 at the end."""
        begin, start = self._replay.priority_beta, self.config.learning_starts
        progress = (self.agent_steps - start) / max(self.config.agent_steps - start, 1)
        return begin + (1 - begin) * progress

    def _evaluate(self, on_step: Callable[[], None]) -> CurvePoint:
        # A whole number is always finite: networks that are not show by their losses alone.
        if isinstance(self.env.action_space, spaces.Discrete) and not np.isfinite([*self.metrics.values()]).all():
            raise Diverged(self.step, self.metrics, self.curve)
        episodes = range(self.config.evaluation_episodes)
        if not self._evaluation_envs:
            self._evaluation_envs = [make_env(self.config.environment) for _ in episodes]
        index = len(self.curve.points)
        returns = evaluate(
            lambda observations: self._act(observations, deterministic=True),
            self._evaluation_envs,
            [seeds.derived_seed(self.seed, seeds.EVALUATION_EPISODE, index, episode) for episode in episodes],
            on_step,
        )
        point = CurvePoint(self.step, returns)
        self.curve = self.curve.with_point(point)
        return point

    def _act(self, observations: Observation, *, deterministic: bool) -> Actions:
        self._keep_threads()
        obs = torch.from_numpy(observations).to(self.device)
        actions: Actions = self._agent_act(obs, deterministic=deterministic).cpu().numpy()
        if not np.isfinite(actions).all():
            raise Diverged(self.step, self.metrics, self.curve)
        return actions

    def policy(self, obs: Observation) -> Action:
        """The deterministic action for an observation."""
        action: Action = self._act(obs[None], deterministic=True)[0]
        return action

    def trained_policy(self) -> TrainedPolicy:
        """The agent as it is now, to act and to be kept; it goes on learning with this training."""
        return TrainedPolicy(
            agent=self.agent,
            job=TrainJob(self.config, self.loss, self.seed),
            observation_shape=self.env.observation_shape,
            action_space=self.env.env.action_space,
            step=self.step,
            score=self.curve.points[-1].score if self.curve.points else float("nan"),
            aulc=self.curve.aulc,
        )

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs to go on exactly as this training would.

        Only between episodes, since an environment's own state cannot be saved in general: each episode starts from
        a seed that depends on its number alone. So not between two lives of a game.
        """
        return {
            "format": _FORMAT,
            "observation_shape": list(self.env.observation_shape),
            "discrete_actions": int(getattr(self.env.action_space, "n", 0)),
            "agent": self.agent.state_dict(),
            "replay": self.replay_buffer.state_dict(),
            "curve": self.curve.to_csv(),
            "agent_steps": self.agent_steps,
            "episode": self.episode,
            "updates": self.updates,
            "updates_without_sequences": self.updates_without_sequences,
            "exploration": self._exploration.bit_generator.state,
            "sampling": self._sampling.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned for the same configuration, loss and seed.

        Raises:
            BadInput: If another version of this program has made it.
        """
        require_format(state)
        self.agent.load_state_dict(state["agent"])
        self.replay_buffer.load_state_dict(state["replay"])
        self.curve = Curve.from_csv(state["curve"])
        self.agent_steps = state["agent_steps"]
        self.episode = state["episode"]
        self.updates = state["updates"]
        self.updates_without_sequences = state["updates_without_sequences"]
        self._exploration.bit_generator.state = state["exploration"]
        self._sampling.bit_generator.state = state["sampling"]

    def close(self) -> None:
        """Free the environments."""
        for env in (self.env, *self._evaluation_envs):
            env.close()
        self._keep_threads()  # The next training of this process has them.
