"""What each network of an agent on images sees, how often, and what an agent acts on."""

import pytest
import torch
from small_agents import (
    ACTION,
    ACTIONS,
    BATCH,
    CURL,
    FRAME,
    SEQUENCES,
    WINNER,
    Watched,
    images,
    learn,
    make_agent,
    pixel_agent,
    places_of,
    sequences,
    snapshot,
    transitions,
    vectors,
)
from torch import nn

from a2ls._errors import BadInput
from a2ls.agents import SAC, SACConfig
from a2ls.space import Loss

LOSSES = [None, WINNER, CURL, Loss.parse("s0 s1 s2 -> a0 r1"), Loss.parse("s0 a0 s2 -> s1 r1 s3 s4")]


@pytest.mark.parametrize("actor_encoder", ["shared", "own"])
@pytest.mark.parametrize(("augmentation", "views"), [("crop", 1), ("none", 1), ("shift", 2)])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_each_network_sees_the_images_of_the_table_in_the_documents(loss, augmentation, views, actor_encoder):
    agent = pixel_agent(loss, augmentation=augmentation, augmented_views=views, actor_encoder=actor_encoder)
    source, target = (0, 0) if loss is None else (sum(loss.source[::3]), sum(loss.target[::3]))
    for i in range(2):
        watched = Watched(agent)
        learn(agent, i, i + 1, loss, images)
        # Number of images, and whether they are seen with a graph.
        following, observed = (views * BATCH, False), (views * BATCH, True)
        again = [(BATCH, False)] if i == 0 else []
        of_source, of_target = [(source * SEQUENCES, True)] * (source > 0), [(target * SEQUENCES, False)] * (target > 0)
        calls = {name: [(len(seen), graph) for other, seen, graph in watched.calls if other == name] for name in "OTA"}
        assert calls["T"] == [following, *of_target]
        shared = actor_encoder == "shared"
        assert calls["O"] == [*[following] * shared, observed, *again, *of_source]
        assert calls["A"] == ([] if shared else [following, *again])
        watched.remove()


def test_views_of_a_transition_are_cut_independently_and_alike_for_all_networks():
    agent, same, seen_places = pixel_agent(None), 0, set()
    for i in range(12):
        watched, batch = Watched(agent), transitions(i, images)
        agent.update(batch)
        following, observed, again = watched.seen("O")
        assert torch.equal(following, watched.seen("T")[0])
        assert torch.equal(observed, again)
        pairs = list(zip(places_of(observed, batch.obs), places_of(following, batch.next_obs), strict=True))
        same += sum(a == b for a, b in pairs)
        seen_places |= set(pairs)
        watched.remove()
    assert same < 20  # of 72, where 72 / 9 are expected
    assert len(seen_places) > 36  # of 81


@pytest.mark.parametrize(("text", "steps"), [("s0 -> s0", ((0,), (0,))), ("s0 a0 s2 -> s1 s3", ((0, 2), (1, 3)))])
def test_every_state_of_a_sequence_is_cut_independently_on_both_sides(text, steps):
    loss, same, pairs = Loss.parse(text), 0, 0
    agent = pixel_agent(loss)
    for i in range(10):
        watched, given = Watched(agent), sequences(loss, i, images)
        agent.update(transitions(i, images), given)
        places = [
            places_of(block, given.states[step])
            for name, side in zip("OT", steps, strict=True)
            for block, step in zip(watched.seen(name)[-1].chunk(len(side)), side, strict=True)
        ]
        for k, one in enumerate(places):
            for other in places[k + 1 :]:
                same += sum(a == b for a, b in zip(one, other, strict=True))
                pairs += SEQUENCES
        watched.remove()
    assert same < 0.25 * pairs  # where a ninth are expected


def test_scaled_vectors_share_a_factor_within_a_view_and_not_across_views():
    loss = Loss.parse("s0 a0 s1 -> s2 s3")
    agent, batch, given = make_agent(loss, augmentation="scale", actor_encoder="shared"), transitions(), sequences(loss)
    watched = Watched(agent)
    agent.update(batch, given)

    def factors(seen, original):
        ratio = seen / original
        torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))
        return ratio[:, 0]

    (following, observed, again, source), (following_too, target) = watched.seen("O"), watched.seen("T")
    transition = factors(following, batch.next_obs)
    for seen, original in ((observed, batch.obs), (again, batch.obs), (following_too, batch.next_obs)):
        torch.testing.assert_close(factors(seen, original), transition)
    sides = []
    for seen, steps in ((source, (0, 1)), (target, (2, 3))):
        one, other = (factors(block, given.states[t]) for block, t in zip(seen.chunk(2), steps, strict=True))
        torch.testing.assert_close(one, other)
        sides.append(one)
    assert len({round(factor.item(), 4) for factor in torch.cat([transition, *sides])}) == BATCH + 2 * SEQUENCES


@pytest.mark.parametrize("step", ["critic", "auxiliary"])
def test_each_weight_of_a_convolution_moves_by_its_own_gradient(step):
    # Weights lie in memory channels-last, and a fused Adam goes through memory.
    agent = pixel_agent()
    optimizer = getattr(agent, f"{step}_optimizer")
    mine = [p for group in optimizer.param_groups for p in group["params"]]
    assert any(p.dim() == 4 and not p.is_contiguous() for p in mine)
    plain = [nn.Parameter(p.detach().clone(memory_format=torch.contiguous_format)) for p in mine]
    rates = [group["lr"] for group in optimizer.param_groups for _ in group["params"]]
    adam = torch.optim.Adam([{"params": [p], "lr": lr} for p, lr in zip(plain, rates, strict=True)], foreach=False)
    gradients = []
    optimizer.register_step_pre_hook(
        lambda *_: gradients.extend(p.grad.clone(memory_format=torch.contiguous_format) for p in mine)
    )
    for i in range(4):
        if step == "critic":
            agent.update_critic(agent.views(transitions(i, images)))
        else:
            agent.update_auxiliary(sequences(WINNER, i, images))
        for p in plain:
            p.grad = gradients.pop(0)
        adam.step()
        torch.testing.assert_close(mine, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("augmentation", ["crop", "shift", "none"])
@pytest.mark.parametrize(
    "stored",
    [
        lambda batch: batch.contiguous(memory_format=torch.channels_last),
        lambda batch: batch.repeat_interleave(2, dim=3)[:, :, :, ::2],
        lambda batch: batch.float(),
    ],
    ids=["channels-last", "strided", "float"],
)
def test_learning_and_acting_do_not_depend_on_how_images_are_stored(stored, augmentation):
    results = []
    for observed in (images, lambda *which: stored(images(*which))):
        agent = pixel_agent(augmentation=augmentation)
        learn(agent, 0, 2, WINNER, observed)
        results.append([*agent.parameters(), agent.act(observed(3, 0), deterministic=True)])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize(("frame", "size", "margin"), [(17, 13, 2), (16, 13, 1)])
def test_actions_depend_on_the_pixels_of_the_middle_alone(frame, size, margin):
    agent, image = pixel_agent(None, frame=frame, image_size=size), images(1, 0, frame)
    torch.manual_seed(0)
    for parameter in agent.encoder.body.parameters():
        nn.init.uniform_(parameter, 0.1, 1.0)  # With these, every pixel that the convolutions see matters.
    each = image.repeat(frame * frame, 1, 1, 1)
    for i in range(frame * frame):
        each[i, :, i // frame, i % frame] ^= 255
    actions = agent.act(torch.cat([image, each]), deterministic=True)
    moved = ((actions[1:] - actions[0]).abs().amax(dim=1) > 1e-6).view(frame, frame)
    expected = torch.zeros(frame, frame, dtype=torch.bool)
    expected[margin : margin + size, margin : margin + size] = True
    assert torch.equal(moved, expected)


@pytest.mark.parametrize("make", [make_agent, pixel_agent])
def test_acting_learns_nothing_and_draws_noise_only_if_asked(make):
    agent, obs = make(), (images if make is pixel_agent else vectors)()
    before, state = snapshot(agent), agent.generator.get_state()
    first = agent.act(obs, deterministic=True)
    assert torch.equal(first, agent.act(obs, deterministic=True))
    assert torch.equal(state, agent.generator.get_state())
    drawn = [agent.act(obs, deterministic=False) for _ in range(2)]
    assert not torch.equal(*drawn)
    assert first.shape == drawn[0].shape == (3, ACTION)
    assert not any(actions.requires_grad or actions.abs().max() > 1 for actions in (first, *drawn))
    assert all(torch.equal(before[name], value) for name, value in snapshot(agent).items())


def test_an_agent_that_cannot_see_is_refused():
    with pytest.raises(BadInput, match="frame_size is 12, but crop needs one above image_size, which is 12"):
        pixel_agent(frame=12)
    with pytest.raises(BadInput, match="images of side 12 are too small for 5 convolutional layers"):
        pixel_agent(encoder_layers=5)
    with pytest.raises(BadInput, match="'scale', which is for vectors"):
        pixel_agent(augmentation="scale")
    with pytest.raises(BadInput, match="conv needs images"):
        SAC((7,), ACTIONS, SACConfig(encoder="conv"))
    with pytest.raises(BadInput, match=f"dense needs vectors, but observations have the shape .*{FRAME}"):
        SAC((9, FRAME, FRAME), ACTIONS, SACConfig())
