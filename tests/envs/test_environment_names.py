"""From names to Gymnasium ids, and to the nearest names when there is none."""

import pytest

from a2ls.envs import PAPER_TASKS, EnvironmentConfig, UnsuitableEnvironment, dm_control_body, make_env, resolve_id


def test_the_paper_has_18_vector_tasks():
    assert len(PAPER_TASKS) == 18


@pytest.mark.parametrize(
    ("name", "gymnasium_id"),
    [
        ("cheetah-run", "dm_control/cheetah-run-v0"),
        ("Cheetah-Run", "dm_control/cheetah-run-v0"),
        ("finger-turn-hard", "dm_control/finger-turn_hard-v0"),
        ("ball_in_cup-catch", "dm_control/ball_in_cup-catch-v0"),
        ("dm_control/swimmer-swimmer6-v0", "dm_control/swimmer-swimmer6-v0"),
        ("pong", "ALE/Pong-v5"),
        ("Bank_Heist", "ALE/BankHeist-v5"),
        ("ALE/Tennis-v5", "ALE/Tennis-v5"),
        ("Pendulum-v1", "Pendulum-v1"),
        ("helpers.toy_envs:Toy/Counter-v0", "Toy/Counter-v0"),
    ],
)
def test_resolves(name, gymnasium_id):
    assert resolve_id(name) == gymnasium_id


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("cheetah-runn", "'cheetah-run'"),
        ("cartpole-swing-up", "'cartpole-swingup'"),
        ("pongg", "'pong'"),
        ("Pong-v9", "'pong'"),
        ("BankHeist", "'bank-heist'"),
        ("ALE/Tenis-v5", "'ALE/Tennis-v5'"),
        ("Pendulum-v9", "'Pendulum-v1'"),
        ("pendulum", "'Pendulum-v1'"),
        ("dm_control/chetah-run-v0", "'dm_control/cheetah-run-v0'"),
        ("helpers.toy_envs:Toy/Countr-v0", "'Toy/Counter-v0'"),
    ],
)
def test_unknown_names_show_the_nearest(name, nearest):
    with pytest.raises(UnsuitableEnvironment, match="There is no environment") as caught:
        make_env(EnvironmentConfig(env=name))
    assert nearest in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [("§§§", r"walker-walk.*pong.*module:id"), ("no_such_module:Some-v0", "module 'no_such_module'")],
)
def test_a_name_like_no_other_shows_what_there_is_or_is_missing(name, message):
    with pytest.raises(UnsuitableEnvironment, match=message):
        resolve_id(name)


def test_only_tasks_of_dm_control_have_a_body():
    names = ("cheetah-run", "dm_control/ball_in_cup-catch-v0", "pong", "Bank_Heist", "ALE/Tennis-v5", "Pendulum-v1")
    assert [dm_control_body(name) for name in names] == ["cheetah", "ball_in_cup", None, None, None, None]


def test_a_module_with_a_failing_import_of_its_own_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_envs.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        resolve_id("broken_envs:Some-v0")
