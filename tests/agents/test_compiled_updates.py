"""Updates that are played from tapes against the same updates by PyTorch, and what tapes may not do."""

import copy
import pickle
import sys
import warnings

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from a2ls import tape
from a2ls.agents import SAC, SACConfig, Transitions
from a2ls.auxiliary import AuxiliaryLoss, Sequences
from a2ls.space import OPERATORS, Loss, named_loss

OBSERVATION, ACTION, BATCH, STEPS = 4, 2, 8, 4
SMALL = {
    "hidden": 16,
    "predictor_hidden": 12,
    "learning_rate": 3e-3,
    "predictor_learning_rate": 4e-3,
    "encoder_learning_rate": 8e-3,
    "temperature_learning_rate": 2e-2,
}
WINNER = named_loss("a2-winner")
# Of each kind several, on both sides.
MANY = "s0 a0 r0 a1 s2 r2 -> s1 r1 a2 s3 r3"
PRODUCTS = ("addmm", "baddbmm", "bmm", "linear", "matmul", "mm")


def make_agent(loss=WINNER, seed=0, **settings):
    return SAC(OBSERVATION, ACTION, SACConfig(**{**SMALL, **settings}), loss, seed=seed)


def make_pair(loss=WINNER, **settings):
    """Two that differ in nothing but how they compute."""
    return make_agent(loss, **settings), make_agent(loss, compiled=False, **settings)


def transitions(seed=0, size=BATCH, **changes):
    generator = torch.Generator().manual_seed(seed)
    fields = {
        "observations": torch.randn(size, OBSERVATION, generator=generator),
        "actions": torch.rand(size, ACTION, generator=generator) * 2 - 1,
        "rewards": torch.randn(size, generator=generator),
        "next_observations": torch.randn(size, OBSERVATION, generator=generator),
        "continues": (torch.rand(size, generator=generator) > 0.3).to(torch.get_default_dtype()),
    }
    return Transitions(**{**fields, **changes})


def sequences(seed=0, size=BATCH):
    """Tensors with the time first."""
    generator = torch.Generator().manual_seed(1000 + seed)
    return Sequences(
        torch.randn(STEPS, size, OBSERVATION, generator=generator),
        torch.randn(STEPS, size, ACTION, generator=generator),
        torch.randn(STEPS, size, generator=generator),
    )


def as_lists(given):
    return Sequences(*(list(steps) for steps in vars(given).values()))


def as_mappings(given, loss):
    """Just the steps that the loss selects, the last first."""
    elements = sorted({*loss.source_elements, *loss.target_elements}, reverse=True)
    fields = {"s": given.states, "a": given.actions, "r": given.rewards}
    return Sequences(*({e.step: steps[e.step] for e in elements if e.kind == kind} for kind, steps in fields.items()))


def as_columns(given):
    """The batch first in memory, so that no step lies in one piece."""
    return Sequences(*(steps.transpose(0, 1).contiguous().transpose(0, 1) for steps in vars(given).values()))


def learn(agent, start, stop, size=BATCH):
    """Updates from batches that depend on their number alone; returns all figures."""
    return [
        looked_at(agent.update(transitions(i, size), None if agent.auxiliary is None else sequences(i, size)))
        for i in range(start, stop)
    ]


def looked_at(metrics):
    return {name: figure().item() for name, figure in metrics.items()}


def state(agent):
    """All that an update may change, by name."""
    found = copy.deepcopy(agent.state_dict())
    extra = found.pop("_extra_state")
    found |= {"updates": torch.tensor(extra["updates"]), "generator": extra["generator"]}
    for i, optimizer in enumerate(extra["optimizers"]):
        found[f"optimizer {i} steps"] = optimizer["steps"]
        for moment in ("first", "second"):
            found |= {f"optimizer {i} {moment} {j}": tensor for j, tensor in enumerate(optimizer[moment])}
    return found


def changed(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


def assert_same(one, two):
    """Bit for bit."""
    one, two = state(one), state(two)
    assert one.keys() == two.keys()
    assert changed(one, two) == set()


def assert_close(agent, other, *, share, distance, free=None):
    """Moments are within a share of the largest in their tensor, parameters within a distance, the rest is equal.

    Where a gradient is zero but for rounding, as that of a bias before a batch norm, Adam makes steps of the rounding.
    Such parameters may be anywhere, and are noted in `free` since they stay there.
    """
    free = {} if free is None else free
    names = {parameter: name for name, parameter in other.named_parameters()}
    for mine, theirs in zip(optimizers(agent), optimizers(other), strict=True):
        least = 1e-6 * max(moment.abs().max().item() for moment in theirs.first_moments)
        for i, parameter in enumerate(theirs.parameters):
            name, first, second = names[parameter], theirs.first_moments[i], theirs.second_moments[i]
            at_rest = (mine.first_moments[i] != first) & (first.abs() < least)
            free[name] = free.get(name, False) | at_rest
            bound = least if at_rest.any() and first.abs().max() < least else share * first.abs().max().item()
            torch.testing.assert_close(mine.first_moments[i], first, rtol=0, atol=bound, msg=f"first moment of {name}")
            bound = max(least**2, share * second.max().item())
            torch.testing.assert_close(mine.second_moments[i], second, rtol=0, atol=bound, msg=f"second of {name}")
    one, two = state(agent), state(other)
    assert one.keys() == two.keys()
    for name, value in one.items():
        if not value.is_floating_point() or name.endswith("steps"):
            assert torch.equal(value, two[name]), name
        elif not name.startswith("optimizer"):
            far = (value - two[name]).abs() > distance
            assert not (far & ~free.get(name, torch.zeros_like(far))).any(), name
    assert sum(int(elements.sum()) for elements in free.values()) < 0.02 * sum(p.numel() for p in other.parameters())


def optimizers(agent):
    return [agent.critic_optimizer, agent.actor_optimizer, agent.temperature_optimizer, *agent.auxiliary_optimizers]


class Products(TorchDispatchMode):
    """Counts the matrix products that PyTorch dispatches."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.__name__.split(".")[0] in PRODUCTS
        return func(*args, **(kwargs or {}))


def products(agent, *given):
    with Products() as seen:
        agent.update(*given)
    return seen.count


def assert_learn_alike(compiled, plain, given, *, exact=False):
    """Both learn from what is given, and stay close."""
    free = {}
    for i, (batch, sequence) in enumerate(given):
        seen, expected = (looked_at(agent.update(batch, sequence)) for agent in (compiled, plain))
        assert seen == pytest.approx(expected, rel=1e-10 if exact else 1e-4, abs=1e-10 if exact else 1e-5)
        share, distance = (1e-9, 1e-9) if exact else (2e-5, 2e-4) if i == 0 else (2e-4, 4e-4)
        assert_close(compiled, plain, share=share, distance=distance, free=free)


@pytest.fixture(params=["float32", "float64"])
def exact(request):
    """Whether all is in float64, which the machine leaves to PyTorch: then nothing is rounded in another way."""
    torch.set_default_dtype(getattr(torch, request.param))
    yield request.param == "float64"
    torch.set_default_dtype(torch.float32)


def given_with(loss, count=6):
    return [(transitions(i), None if loss is None else sequences(i)) for i in range(count)]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_every_operator_learns_as_without_tapes(operator, exact):
    loss = Loss.parse(f"{MANY} | {operator}")
    # The gradients of biases are sums of differences that cancel: Adam would move by their rounding.
    settings = {"predictor_learning_rate": 1e-9} if str(operator) == "mse +neg" else {}
    assert_learn_alike(*make_pair(loss, **settings), given_with(loss), exact=exact)


@pytest.mark.parametrize(
    "loss",
    [
        None,
        WINNER,
        named_loss("curl"),  # The same state on both sides.
        Loss.parse("s0 a0 -> a0 s0 s1"),
        Loss.parse("s0 s1 -> a0 r1"),  # No state to predict.
    ],
    ids=str,
)
def test_every_form_of_loss_learns_as_without_tapes(loss, exact):
    assert_learn_alike(*make_pair(loss), given_with(loss), exact=exact)


@pytest.mark.parametrize("loss", [None, WINNER], ids=str)
@pytest.mark.parametrize("actor_encoder", ["own", "shared"])
@pytest.mark.parametrize(("encoder", "layers"), [("dense", 1), ("dense", 3), ("mlp", 2), ("identity", 1)])
def test_every_encoder_learns_as_without_tapes(encoder, layers, actor_encoder, loss):
    pair = make_pair(loss, encoder=encoder, encoder_layers=layers, actor_encoder=actor_encoder)
    assert_learn_alike(*pair, given_with(loss))


@pytest.mark.parametrize(
    "settings",
    [
        # By the rounding of a gradient that is none, Adam would move a bias of the encoder by its whole rate.
        {"predictor": "released", "encoder_learning_rate": 1e-9, "predictor_learning_rate": 1e-9},
        {"auxiliary_weight": 0.5},
        {"auxiliary_weight": 0.0},
        {"discount": 0.5, "critic_tau": 0.3, "encoder_tau": 0.7, "initial_temperature": 2.0},
    ],
    ids=str,
)
def test_all_settings_of_learning_hold_with_tapes(settings, exact):
    assert_learn_alike(*make_pair(Loss.parse(MANY), **settings), given_with(WINNER), exact=exact)


@pytest.mark.parametrize(("actor_every", "target_every"), [(1, 1), (3, 2), (2, 1), (1, 4)])
def test_each_step_is_due_when_it_is_without_tapes(actor_every, target_every):
    # Twelve, so that every combination of what is due comes twice.
    pair = make_pair(actor_every=actor_every, target_every=target_every)
    for i in range(12):
        before = state(pair[0])
        assert_learn_alike(*pair, [(transitions(i), sequences(i))])
        after = changed(before, state(pair[0]))
        assert ("actor.layers.0.weight" in after) == (i % actor_every == 0)
        assert ("target_critic.first.weight" in after) == (i % target_every == 0)


@pytest.mark.parametrize("form", [as_lists, lambda given: as_mappings(given, WINNER), as_columns])
def test_every_form_of_sequences_is_the_same_and_some_updates_have_none(form):
    loss = WINNER
    first, second, plain = make_agent(loss), make_agent(loss), make_agent(loss, compiled=False)
    for i in range(8):
        given = None if i in (2, 3, 5) else sequences(i)
        first.update(transitions(i), given)
        second.update(transitions(i), given and form(given))
        plain.update(transitions(i), given)
    assert_same(first, second)
    assert_close(first, plain, share=2e-4, distance=5e-4)


def test_forms_of_sequences_may_change_from_update_to_update():
    forms = [lambda given: given, as_lists, lambda given: as_mappings(given, Loss.parse(MANY)), as_columns]
    agents = [make_agent(Loss.parse(MANY)) for _ in range(2)]
    for i in range(8):
        agents[0].update(transitions(i), sequences(i))
        agents[1].update(transitions(i), forms[i % len(forms)](sequences(i)))
    assert_same(*agents)


def test_batches_may_be_of_any_sizes():
    sizes = [(8, 5), (8, 5), (8, 8), (5, 8), (8, 5), (8, 5), (5, 5), (5, 8), (1, 3), (8, 8)]
    given = [(transitions(i, size), sequences(i, other)) for i, (size, other) in enumerate(sizes)]
    assert_learn_alike(*make_pair(Loss.parse(MANY)), given)


def test_batches_may_lie_in_memory_in_any_way():
    def scattered(batch):
        wide = {name: torch.stack([tensor, tensor], dim=-1)[..., 0] for name, tensor in vars(batch).items()}
        return Transitions(**{**wide, "continues": torch.ones(1).expand(BATCH)})

    agents = [make_agent(None) for _ in range(2)]
    for i in range(4):
        agents[0].update(transitions(i, continues=torch.ones(BATCH)))
        agents[1].update(scattered(transitions(i)))
    assert_same(*agents)


# That updates are played.


def test_pytorch_multiplies_no_matrices_once_every_kind_of_update_has_happened():
    agent, plain = make_pair()
    for i in range(2):
        assert products(agent, transitions(i), sequences(i)) > 0  # Recording.
    for i in range(2, 4):
        assert products(agent, transitions(i)) > 0
    for i in range(4, 8):
        assert products(agent, transitions(i), sequences(i) if i % 3 else None) == 0
        assert products(plain, transitions(i), sequences(i)) > 0


@pytest.mark.parametrize("encoder", ["mlp", "identity"])
def test_other_encoders_and_losses_are_played_too(encoder):
    agent = make_agent(Loss.parse(f"{MANY} | nmse +neg"), encoder=encoder)
    learn(agent, 0, 2)
    assert [products(agent, transitions(i), sequences(i)) for i in range(2, 6)] == [0] * 4


def test_each_kind_of_update_is_recorded_once(monkeypatch):
    recorded = []
    make_tape = tape.Tape

    def make(*arguments):
        recorded.append(None)
        return make_tape(*arguments)

    monkeypatch.setattr(tape, "Tape", make, raising=False)
    agent, counts = make_agent(actor_every=2, target_every=4), []
    for i in range(12):
        agent.update(transitions(i, 5 if i >= 8 else BATCH), sequences(i))
        counts.append(len(recorded))
    assert counts == [1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 6, 6]


# What tapes leave alone.


def test_the_batch_is_never_changed():
    agent = make_agent(Loss.parse(MANY))
    for i in range(5):
        given = transitions(i), sequences(i)
        before = copy.deepcopy(given)
        agent.update(*given)
        for one, other in zip(given, before, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(vars(one).values(), vars(other).values(), strict=True))


def test_a_batch_is_read_anew_even_if_it_lies_where_the_last_did():
    loss = Loss.parse(MANY)
    fresh, reused = make_agent(loss), make_agent(loss)
    batch, sequence = transitions(), sequences()
    for i in range(5):
        fresh.update(transitions(i), sequences(i))
        for mine, theirs in ((batch, transitions(i)), (sequence, sequences(i))):
            for one, other in zip(vars(mine).values(), vars(theirs).values(), strict=True):
                one.copy_(other)
        reused.update(batch, sequence)
        for tensor in (*vars(batch).values(), *vars(sequence).values()):
            tensor.fill_(torch.nan)
    assert_same(fresh, reused)


def test_recording_draws_no_noise_and_counts_no_step():
    agent, plain = make_pair()
    for i in range(3):
        learn(agent, i, i + 1)
        learn(plain, i, i + 1)
        assert agent.updates == i + 1
        assert torch.equal(agent.generator.get_state(), plain.generator.get_state())
        assert [o.steps.item() for o in optimizers(agent)] == [o.steps.item() for o in optimizers(plain)]


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    learn(make_agent(), 0, 3)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("predictor", ["paper", "released"])
@pytest.mark.parametrize("loss", [None, WINNER, Loss.parse(f"{MANY} | bilinear +neg")], ids=str)
def test_an_update_is_the_same_whether_its_tape_is_new_or_old(loss, predictor):
    fresh, used = make_agent(loss, predictor=predictor), make_agent(loss, seed=5, predictor=predictor)
    start = copy.deepcopy(fresh.state_dict())
    learn(used, 100, 104)
    used.load_state_dict(start)
    assert_same(fresh, used)
    for i in range(2):
        assert learn(fresh, i, i + 1) == learn(used, i, i + 1)
        assert_same(fresh, used)


@pytest.mark.parametrize("stop", [1, 2, 5])
@pytest.mark.parametrize("loss", [None, WINNER, Loss.parse(f"{MANY} | cosine +neg")], ids=str)
def test_a_restored_agent_goes_on_bit_for_bit(loss, stop):
    agent, other = make_agent(loss), make_agent(loss, seed=1)
    learn(agent, 0, stop)
    other.load_state_dict(copy.deepcopy(agent.state_dict()))
    assert learn(agent, stop, 8) == learn(other, stop, 8)
    assert_same(agent, other)


def test_a_state_that_is_loaded_between_updates_is_learnt_on():
    agent, other = make_agent(), make_agent(seed=1)
    learn(agent, 0, 4)
    saved = copy.deepcopy(agent.state_dict())
    learn(agent, 4, 7)
    agent.load_state_dict(saved)
    other.load_state_dict(saved)
    assert learn(agent, 10, 13) == learn(other, 10, 13)
    assert_same(agent, other)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("updates", [0, 3])
def test_a_copy_learns_the_same_and_on_its_own(way, updates):
    agent, undisturbed = make_agent(), make_agent()
    learn(agent, 0, updates)
    learn(undisturbed, 0, updates)
    other = way(agent)
    before = state(agent)
    learn(other, updates, updates + 4)
    assert changed(before, state(agent)) == set()
    learn(agent, updates, updates + 4)
    assert_same(agent, other)
    learn(undisturbed, updates, updates + 4)
    assert_same(agent, undisturbed)
    assert products(other, transitions(), sequences()) == 0


@pytest.mark.parametrize(
    "move",
    [lambda agent: agent.double().float(), lambda agent: agent._apply(torch.clone), lambda agent: agent.to("cpu")],
)
def test_parameters_may_be_moved_between_updates(move):
    agent, undisturbed = make_agent(), make_agent()
    one = transitions().observations[:1]
    kept = []  # Where parameters were: a tape that still writes there shall break this test, and not Python.
    for i in range(5):
        if i in (2, 3):
            kept += [parameter.data for parameter in agent.parameters()]
            assert move(agent) is agent
        learn(agent, i, i + 1)
        learn(undisturbed, i, i + 1)
        for deterministic in (True, False):
            actions = [a.act(one, deterministic=deterministic) for a in (agent, undisturbed)]
            assert torch.equal(*actions)
    assert_same(agent, undisturbed)


def test_parameters_of_a_part_may_be_moved_between_updates():
    agent, undisturbed = make_agent(), make_agent()
    learn(agent, 0, 2)
    learn(undisturbed, 0, 2)
    kept = [parameter.data for parameter in agent.critic.parameters()]
    agent.critic.double().float()
    learn(agent, 2, 4)
    learn(undisturbed, 2, 4)
    del kept
    assert_same(agent, undisturbed)


# Figures.


def test_a_figure_is_that_of_its_update():
    agent, plain = make_pair(actor_every=1)
    for i in range(5):
        batch = transitions(i)
        with torch.no_grad():
            value = agent.critic(agent.encoder(batch.observations), batch.actions).mean().item()
        temperature = agent.log_temperature.exp().item()
        seen = looked_at(agent.update(batch, sequences(i)))
        assert seen["value"] == pytest.approx(value, abs=1e-5)
        assert seen["temperature"] == pytest.approx(temperature, rel=1e-5)
        assert seen == pytest.approx(looked_at(plain.update(batch, sequences(i))), rel=1e-4, abs=1e-5)
        assert list(seen) == ["critic_loss", "value", "actor_loss", "entropy", "temperature", "auxiliary_loss"]


def test_a_figure_may_be_looked_at_twice():
    metrics = make_agent().update(transitions(), sequences())
    assert looked_at(metrics) == looked_at(metrics)


def test_what_a_figure_gave_stays_as_it_was():
    agent = make_agent(actor_every=1)
    learn(agent, 0, 1)
    given = {name: figure() for name, figure in agent.update(transitions(1), sequences(1)).items()}
    before = copy.deepcopy(given)
    learn(agent, 2, 6)
    assert changed(before, given) == set()
    for tensor in given.values():
        tensor.fill_(7.0)
    assert learn(agent, 6, 8) == learn_from(make_agent(actor_every=1), 6, 8)


def learn_from(agent, start, stop):
    learn(agent, 0, start)
    return learn(agent, start, stop)


def test_a_figure_that_the_next_update_has_not_can_still_be_looked_at():
    agent, plain = make_pair()
    metrics = agent.update(transitions(), sequences())
    expected = looked_at(plain.update(transitions(), sequences()))
    agent.update(transitions(1))  # No step of the actor, and no sequences.
    assert looked_at(metrics) == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_an_earlier_figure_is_refused_and_never_wrong():
    agent = make_agent()
    earlier = agent.update(transitions(), sequences())
    agent.update(transitions(1), sequences(1))
    later = agent.update(transitions(2), sequences(2))
    for figure in earlier.values():
        with pytest.raises(RuntimeError, match="earlier update"):
            figure()
    assert list(looked_at(later)) == list(earlier)


def test_figures_may_be_taken_out_of_what_update_returns():
    agent = make_agent()
    learn(agent, 0, 2)
    metrics = dict(agent.update(transitions(2), sequences(2)))
    names = list(metrics)
    metrics.clear()
    learn(agent, 3, 4)
    assert list(agent.update(transitions(4), sequences(4))) == names


# Acting.


@pytest.mark.parametrize("settings", [{}, {"encoder": "mlp"}, {"encoder": "identity"}, {"actor_encoder": "shared"}])
def test_acting_is_as_without_tapes(settings):
    compiled, plain = make_pair(**settings)
    for i in range(6):
        for size in (1, 2, 1, 3):
            for deterministic in (True, False):
                observations = transitions(50 + i, size).observations
                before = observations.clone()
                actions = [a.act(observations, deterministic=deterministic) for a in (compiled, plain)]
                assert actions[0].shape == (size, ACTION)
                torch.testing.assert_close(*actions, rtol=0, atol=1e-4)
                assert torch.equal(observations, before)
        learn(compiled, i, i + 1)
        learn(plain, i, i + 1)
    assert_close(compiled, plain, share=2e-4, distance=5e-4)


def test_acting_changes_nothing_but_the_noise_that_follows():
    agent = make_agent()
    for deterministic in (True, False):
        for i in range(2):
            before = state(agent)
            agent.act(transitions(i, 1).observations, deterministic=deterministic)
            assert changed(before, state(agent)) == (set() if deterministic else {"generator"})


def test_actions_stay_as_they_were_chosen():
    agent = make_agent()
    for deterministic in (True, False):
        actions = [agent.act(transitions(i, 1).observations, deterministic=deterministic) for i in range(4)]
        before = copy.deepcopy(actions)
        agent.act(transitions(9, 1).observations, deterministic=deterministic)
        assert all(torch.equal(one, other) for one, other in zip(actions, before, strict=True))
        assert not torch.equal(actions[0], actions[1])


def test_pytorch_multiplies_no_matrices_for_a_single_action():
    agent, one = make_agent(), transitions(0, 1).observations
    for deterministic in (True, False):
        counts = []
        for _ in range(3):
            with Products() as seen:
                agent.act(one, deterministic=deterministic)
            counts.append(seen.count)
        assert counts[0] > 0
        assert counts[1:] == [0, 0]


def test_an_action_may_be_chosen_for_nothing():
    agent = make_agent()
    for size in (1, 0, 1, 2, 0):
        for deterministic in (True, False):
            assert agent.act(torch.zeros(size, OBSERVATION), deterministic=deterministic).shape == (size, ACTION)


# Where there are no tapes.


@pytest.mark.parametrize("augmentation", ["scale", "noise"])
def test_augmented_vectors_are_learnt_without_tapes(augmentation):
    compiled, plain = make_pair(augmentation=augmentation, augmented_views=2)
    assert learn(compiled, 0, 4) == learn(plain, 0, 4)
    assert_same(compiled, plain)
    assert products(compiled, transitions(), sequences()) > 0


def test_images_are_learnt_without_tapes():
    settings = {"encoder": "conv", "encoder_layers": 2, "filters": 4, "hidden": 8}
    agents = [SAC((3, 12, 12), ACTION, SACConfig(**settings, compiled=compiled), WINNER) for compiled in (True, False)]
    for i in range(3):
        pixels = torch.randint(0, 256, (6, BATCH, 3, 12, 12), generator=torch.Generator().manual_seed(i)).byte()
        batch = transitions(i, observations=pixels[4], next_observations=pixels[5])
        sequence = Sequences(pixels[:STEPS], sequences(i).actions, sequences(i).rewards)
        assert len({tuple(looked_at(agent.update(batch, sequence)).items()) for agent in agents}) == 1
    assert_same(*agents)
    assert products(agents[0], batch, sequence) > 0


def test_without_the_compiler_updates_are_those_of_pytorch_and_a_warning_says_so_once(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("a2ls.tape.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == "numba"] or ["numba"]:
        monkeypatch.setitem(sys.modules, name, None)
    compiled, plain = make_pair()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        assert learn(compiled, 0, 5) == learn(plain, 0, 5)
        compiled.act(transitions(0, 1).observations, deterministic=True)
    plain.act(transitions(0, 1).observations, deterministic=True)
    assert_same(compiled, plain)
    messages = [str(warning.message) for warning in caught if "compiled" in str(warning.message)]
    assert len(messages) == 1
    assert "numba" in messages[0]


def test_an_update_that_reads_numbers_out_of_tensors_is_done_by_pytorch():
    compiled, plain = make_pair()
    for agent in (compiled, plain):

        def update_critic(batch, update=agent._update_critic):
            assert batch.rewards.mean().item() < 10
            return update(batch)

        agent._update_critic = update_critic
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert learn(compiled, 0, 5) == learn(plain, 0, 5)
    assert_same(compiled, plain)
    assert products(compiled, transitions(), sequences()) > 0


def test_what_cannot_be_recorded_leaves_no_trace_of_the_attempt_and_is_not_tried_again(monkeypatch):
    attempts = []

    def make_tape(function, *_):
        attempts.append(None)
        function()
        raise tape.NotRecordable

    monkeypatch.setattr(tape, "Tape", make_tape, raising=False)
    compiled, plain = make_pair()
    one = transitions(0, 1).observations
    for i in range(5):
        assert learn(compiled, i, i + 1) == learn(plain, i, i + 1)
        assert torch.equal(*(agent.act(one, deterministic=False) for agent in (compiled, plain)))
    assert_same(compiled, plain)
    assert len(attempts) == 3  # Updates with and without a step of the actor, and acting.


def test_one_kind_of_update_that_cannot_be_recorded_leaves_the_others_as_they_are():
    agent = make_agent()
    update_actor = agent._update_actor

    def reading(observations):
        observations.sum().item()
        return update_actor(observations)

    agent._update_actor = reading
    learn(agent, 0, 4)
    assert [products(agent, transitions(i), sequences(i)) > 0 for i in range(4, 8)] == [True, False] * 2


def test_an_update_that_fails_leaves_the_agent_as_it_was():
    agent = make_agent()
    before = state(agent)
    with pytest.raises(RuntimeError):
        agent.update(transitions(), Sequences(sequences().states[..., :2], *list(vars(sequences()).values())[1:]))
    assert changed(before, state(agent)) == set()
    assert learn(agent, 0, 3) == learn(make_agent(), 0, 3)


# What is not finite.


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("field", ["rewards", "observations"])
@pytest.mark.parametrize("first", [0, 2])
def test_what_is_not_finite_spreads_as_without_tapes(field, value, first):
    pair = make_pair()
    for agent in pair:
        learn(agent, 0, first)
    tensor = getattr(transitions(first), field).clone()
    tensor[1] = value
    for agent in pair:
        metrics = agent.update(transitions(first, **{field: tensor}), sequences(first))
        assert metrics["critic_loss"]().isnan() or metrics["critic_loss"]().isinf()
        learn(agent, first + 1, first + 3)
    broken = [{name for name, value in state(agent).items() if not value.isfinite().all()} for agent in pair]
    assert broken[0] == broken[1]
    assert {"critic.first.weight", "critic.last.bias", "encoder.head.linear.weight"} <= broken[0]
    assert not agent.critic.first.weight.isfinite().any()


# What a loss selects.


@pytest.mark.parametrize("text", [MANY, "s0 -> s0 | bilinear +neg", "s0 a0 -> a0 s0 s1", "s2 -> s3 r2"])
@pytest.mark.parametrize("form", [lambda given, _: given, lambda given, _: as_lists(given), as_mappings])
def test_a_loss_is_the_same_of_just_what_it_selects(text, form):
    auxiliary = AuxiliaryLoss(Loss.parse(text), OBSERVATION, ACTION)
    selected = auxiliary.selected(form(sequences(), auxiliary.loss))
    elements = sorted({*auxiliary.loss.source_elements, *auxiliary.loss.target_elements})
    assert len(selected) == len(elements)
    fields = {"s": sequences().states, "a": sequences().actions, "r": sequences().rewards}
    assert all(torch.equal(found, fields[e.kind][e.step]) for found, e in zip(selected, elements, strict=True))
    again = auxiliary.from_selected(selected)
    for steps, kind in zip(vars(again).values(), "sar", strict=True):
        assert set(steps) == {e.step for e in elements if e.kind == kind}
    whole, part = (auxiliary(given, torch.nn.Identity(), torch.nn.Identity()) for given in (sequences(), again))
    assert torch.equal(whole, part)


def test_elements_that_are_not_all_there_are_refused():
    auxiliary = AuxiliaryLoss(WINNER, OBSERVATION, ACTION)
    with pytest.raises(ValueError, match="shorter"):
        auxiliary.from_selected(auxiliary.selected(sequences())[1:])
