"""SAC, TD3 and DQN of Stable-Baselines3 with an auxiliary loss on the encoder of their critic."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from torch import Tensor

from a2ls._errors import BadInput
from a2ls._extras import extra
from a2ls.auxiliary import SequenceSampler
from a2ls.sb3._auxiliary_part import AuxiliaryPart
from a2ls.sb3._policies import (
    DQNCnnPolicy,
    DQNMlpPolicy,
    SACCnnPolicy,
    SACMlpPolicy,
    TD3CnnPolicy,
    TD3MlpPolicy,
)
from a2ls.space import Loss, find_loss

with extra("sb3", "a2ls.sb3 needs"):
    import stable_baselines3
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.policies import BaseModel, BasePolicy
    from stable_baselines3.common.preprocessing import get_action_dim, preprocess_obs
    from stable_baselines3.common.type_aliases import GymEnv


class WithAuxiliaryLoss(OffPolicyAlgorithm):
    """The part that the algorithms share, to be inherited from before one of Stable-Baselines3's.

    After the gradient steps of the algorithm come as many steps of encoder and predictor by the auxiliary loss, on
    sequences from the algorithm's own replay buffer. The logger has the loss as `train/auxiliary_loss`.

    Args:
        policy: `MlpPolicy` for vectors, `CnnPolicy` for images, or a subclass of theirs.
        env: As in Stable-Baselines3; several environments at once will do.
        args: Further arguments of the algorithm in Stable-Baselines3.
        auxiliary_loss: A `Loss`, its text form (`s0 a0 -> s1`) or its name; None for the same networks without one.
        auxiliary_weight: The factor of the loss.
        auxiliary_batch_size: Sequences in a batch; as many as transitions if None.
        auxiliary_lr: Adam's step for the predictor, and half of the one for the encoder; `learning_rate` if None, with
            its schedule.
        encoder_tau: How far the momentum copy of the encoder, which makes the targets, moves after each step. The
            paper's moves by 0.05 after every second.
        settings: Further keyword arguments of the algorithm in Stable-Baselines3.

    Raises:
        BadInput: If the loss, the policy, the observations or the replay buffer do not suit.
    """

    auxiliary: AuxiliaryPart | None

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str | None,
        *args: Any,
        auxiliary_loss: Loss | str | None = "a2-winner",
        auxiliary_weight: float = 1.0,
        auxiliary_batch_size: int | None = None,
        auxiliary_lr: float | None = None,
        encoder_tau: float = 0.025,
        _init_setup_model: bool = True,
        **settings: Any,
    ) -> None:
        if auxiliary_loss is not None:
            # Its text form, which is saved with the model; a name may come to mean something else.
            auxiliary_loss = str(find_loss(auxiliary_loss) if isinstance(auxiliary_loss, str) else auxiliary_loss)
        _require(auxiliary_weight >= 0, "auxiliary_weight", auxiliary_weight, "not be negative")
        _require(auxiliary_lr is None or auxiliary_lr > 0, "auxiliary_lr", auxiliary_lr, "be above 0")
        _require(0 <= encoder_tau <= 1, "encoder_tau", encoder_tau, "be from 0 to 1")
        _require(
            auxiliary_batch_size is None or auxiliary_batch_size >= 1,
            "auxiliary_batch_size",
            auxiliary_batch_size,
            "be at least 1",
        )
        # Stable-Baselines3 would advise another policy, which would not do either.
        _refuse_dictionaries(getattr(env, "observation_space", None))
        self._require_policy(policy)
        super().__init__(policy, env, *args, _init_setup_model=False, **settings)  # type: ignore[call-arg, arg-type]
        self.auxiliary_loss = auxiliary_loss
        self.auxiliary_weight = auxiliary_weight
        self.auxiliary_batch_size = auxiliary_batch_size
        self.auxiliary_lr = auxiliary_lr
        self.encoder_tau = encoder_tau
        self.auxiliary = None
        self._auxiliary_rng = np.random.default_rng(self.seed)
        self._sampler: tuple[ReplayBuffer, SequenceSampler] | None = None
        self._warned_of_short_episodes = False
        if _init_setup_model:
            self._setup_model()

    def _require_policy(self, policy: str | type[BasePolicy]) -> None:
        known = tuple(self.policy_aliases.values())
        if isinstance(policy, str):
            if policy not in self.policy_aliases:
                names = ", ".join(self.policy_aliases)
                raise BadInput(
                    f"policy is {policy!r}, but must be one of {names}: auxiliary losses are for vectors and images"
                )
        elif not issubclass(policy, known):
            raise BadInput(
                f"policy is {policy.__name__}, but must inherit from {' or '.join(each.__name__ for each in known)} "
                f"({known[0].__module__}), in which the critic owns the encoder"
            )

    def _setup_model(self) -> None:
        _refuse_dictionaries(self.observation_space)
        if self.auxiliary_loss is not None and self.optimize_memory_usage:
            raise BadInput(
                "optimize_memory_usage is True, but then the replay buffer does not keep the last observation of "
                "episodes, which auxiliary losses need"
            )
        super()._setup_model()
        if self.auxiliary_loss is None:
            return
        owner = self._encoder_owner()
        encoder = owner.features_extractor
        assert encoder is not None
        if not list(encoder.parameters()):
            raise BadInput(
                f"features_extractor_class is {type(encoder).__name__}, in which an auxiliary loss has nothing to train"
            )

        def preprocess(obs: Tensor) -> Tensor:
            seen = preprocess_obs(obs, owner.observation_space, normalize_images=owner.normalize_images)
            assert isinstance(seen, Tensor)
            return seen

        space = self.action_space
        self.auxiliary = AuxiliaryPart(
            Loss.parse(self.auxiliary_loss),
            encoder,
            preprocess,
            encoder.features_dim,
            int(space.n) if isinstance(space, spaces.Discrete) else get_action_dim(space),
            lr=self._auxiliary_rate(1.0),
            weight=self.auxiliary_weight,
            tau=self.encoder_tau,
        ).to(self.device)

    def _encoder_owner(self) -> BaseModel:
        """The network whose features extractor the auxiliary loss trains."""
        owner = self.policy.critic
        assert isinstance(owner, BaseModel)
        return owner

    def _auxiliary_rate(self, progress_remaining: float) -> float:
        return float(self.lr_schedule(progress_remaining) if self.auxiliary_lr is None else self.auxiliary_lr)

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Gradient steps of the algorithm, and as many of the auxiliary loss."""
        super().train(gradient_steps, batch_size)
        if self.auxiliary is None:
            return
        assert self.replay_buffer is not None
        self.auxiliary.set_lr(self._auxiliary_rate(self._current_progress_remaining))
        sampler = self._sequence_sampler(self.replay_buffer)
        batch_size = self.auxiliary_batch_size or batch_size
        losses = []
        for _ in range(gradient_steps):
            sequences = sampler.sample(
                batch_size, self._auxiliary_rng, position=self.replay_buffer.pos, full=self.replay_buffer.full
            )
            if sequences is None:
                self._warn_of_short_episodes(self.replay_buffer, sampler.rows)
                return
            losses.append(self.auxiliary.update(sequences))
        self.logger.record("train/auxiliary_loss", np.mean(losses))

    def _sequence_sampler(self, buffer: ReplayBuffer) -> SequenceSampler:
        """What draws from the replay buffer, which may have been loaded anew."""
        if self._sampler is None or self._sampler[0] is not buffer:
            assert self.auxiliary is not None
            # Normalised as the transitions are, by the statistics of the moment.
            sampler = SequenceSampler(
                self.auxiliary.loss.loss,
                buffer.observations,
                buffer.actions,
                buffer.rewards,
                buffer.dones,
                next_obs=buffer.next_observations,
                device=self.device,
                obs_transform=lambda obs: np.asarray(buffer._normalize_obs(obs, self._vec_normalize_env)),
                reward_transform=lambda rewards: buffer._normalize_reward(rewards, self._vec_normalize_env),
            )
            self._sampler = (buffer, sampler)
        return self._sampler[1]

    def _warn_of_short_episodes(self, buffer: ReplayBuffer, needed: int) -> None:
        # Before the first episode is over it may just not be long enough yet.
        if self._warned_of_short_episodes or not buffer.dones[: buffer.size()].any():
            return
        self._warned_of_short_episodes = True
        warnings.warn(
            f"The auxiliary loss {self.auxiliary_loss} is not used so far: it needs {needed} steps in one episode, and "
            "all episodes in the replay buffer are shorter.",
            stacklevel=2,
        )

    def _setup_learn(
        self, total_timesteps: int, callback: Any = None, reset_num_timesteps: bool = True, *args: Any, **settings: Any
    ) -> Any:
        buffer = self.replay_buffer
        resets = reset_num_timesteps or self._last_obs is None
        if self.auxiliary_loss is not None and resets and buffer is not None and buffer.size():
            # The environments are about to be reset, so what comes next belongs to other episodes. As at a time limit,
            # values go on beyond: the algorithm learns what it would have learned.
            newest = buffer.pos - 1
            going_on = buffer.dones[newest] == 0
            buffer.dones[newest][going_on] = 1
            buffer.timeouts[newest][going_on] = 1
        return super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *args, **settings)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "auxiliary", "_sampler"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        state_dicts, variables = super()._get_torch_save_params()
        if self.auxiliary is not None:
            state_dicts = [*state_dicts, "auxiliary", "auxiliary.optimizer"]
        return state_dicts, variables


def _refuse_dictionaries(space: object) -> None:
    if isinstance(space, spaces.Dict):
        raise BadInput(
            "the observations are dictionaries, but auxiliary losses are for vectors and images; "
            "gymnasium.wrappers.FlattenObservation makes vectors of dictionaries"
        )


def _require(allowed: bool, name: str, value: object, words: str) -> None:
    if not allowed:
        raise BadInput(f"{name} is {value}, but must {words}")


class SAC(WithAuxiliaryLoss, stable_baselines3.SAC):
    __doc__ = f"SAC of Stable-Baselines3 with an auxiliary loss.\n\n{WithAuxiliaryLoss.__doc__}"
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": SACMlpPolicy, "CnnPolicy": SACCnnPolicy}


class TD3(WithAuxiliaryLoss, stable_baselines3.TD3):
    __doc__ = f"TD3 of Stable-Baselines3 with an auxiliary loss.\n\n{WithAuxiliaryLoss.__doc__}"
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": TD3MlpPolicy, "CnnPolicy": TD3CnnPolicy}


class DQN(WithAuxiliaryLoss, stable_baselines3.DQN):
    __doc__ = f"DQN of Stable-Baselines3 with an auxiliary loss.\n\n{WithAuxiliaryLoss.__doc__}"
    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": DQNMlpPolicy, "CnnPolicy": DQNCnnPolicy}

    def _encoder_owner(self) -> BaseModel:
        return self.policy.q_net
