"""Names, labels and reasons from users and from folders of strangers are shown as they are, and never obeyed."""

import json
import re
import shutil
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

import a2ls.cli
from a2ls.cli import main
from a2ls.search import SearchConfig, SearchFolder
from helpers.comparisons import RESULTS
from helpers.engines import InstantEngine, made_up_score
from helpers.trainings import PENDULUM

OLD_RUN = Path(__file__).parents[1] / "studies/version_0_1/run"
CLEARS_THE_SCREEN = "\x1b[2J"
# Also what rich would read as markup or a picture, and what would end or hide the script of a page.
HOSTILE = f"{CLEARS_THE_SCREEN}[/b]:bomb:<!--<script>"
SHOWN = r"\x1b[2J[/b]:bomb:<!--<script>"


@pytest.fixture(autouse=True)
def _in_an_empty_folder_with_a_wide_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")


def is_harmless(text):
    """Whether nothing is meant for the terminal itself, to which no colours are written here."""
    return text.replace("\n", "").isprintable()


@pytest.fixture
def of_a_stranger(tmp_path):
    """An export in which every text that can be anything is hostile."""
    table = parquet.read_table(RESULTS / "candidates.parquet")
    settings = json.loads(table.schema.metadata[b"a2ls_settings"])
    settings["training"]["environment"]["env"] = f"cheetah-run{HOSTILE}"
    settings |= {"name": HOSTILE, "versions": {"a2ls": HOSTILE, "processor": HOSTILE}}
    rows = table.to_pylist()
    for row in rows:
        row["env"], row["reasons"] = f"cheetah-run{HOSTILE}", [HOSTILE]
        if row["stage"] is None:
            row["label"] = f"{row['label']}: hidden={HOSTILE}" if row["number"] == 0 else row["label"]
        else:
            row["label"], row["origin"] = f"{row['label']}{HOSTILE}", HOSTILE
    made = pyarrow.Table.from_pylist(rows, schema=table.schema)
    file = tmp_path / "table.parquet"
    parquet.write_table(made.replace_schema_metadata({"a2ls_settings": json.dumps(settings)}), file)
    return str(file)


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze"],
        ["analyze", "--csv", "-"],
        ["report", "--out", "x[/b].html"],
        ["compare", "--resamples", "100", "--html", "x[/b].html", "--csv", "x[/b]"],
    ],
    ids=" ".join,
)
def test_an_export_of_a_stranger_is_shown_and_not_obeyed(of_a_stranger, arguments, capsys):
    command, *options = arguments
    Path("x[").mkdir()
    assert main([command, of_a_stranger, *options]) == 0
    shown = capsys.readouterr()
    assert is_harmless(shown.out + shown.err)
    assert (SHOWN if command != "report" else "x[/b].html") in shown.out
    for page in Path().rglob("*.html"):
        text = page.read_text()
        figures = text[text.index("const FIGURES = ") : text.index("const THEMES")]
        assert "<" not in figures
        assert "<!--<script>" not in text


def test_settings_of_a_method_that_cannot_be_are_refused_in_words(of_a_stranger, capsys):
    assert main(["export", of_a_stranger, "--out", "x[/b]"]) == 2
    shown = capsys.readouterr().err
    assert is_harmless(shown)
    assert "table.parquet" in shown


def test_a_run_in_a_folder_that_reads_like_markup(capsys):
    shutil.copytree(OLD_RUN, "x[/b]")
    assert main(["train", "--resume", "x[/b]"]) == 0
    shown = capsys.readouterr().out
    assert "agent steps), in x[/b]\n" in shown
    assert re.search(r"folder +x\[/b\]", shown)
    assert main(["train", "--out", "x[/b]"]) == 2
    assert "--resume 'x[/b]'" in capsys.readouterr().err


def test_reasons_in_a_search_of_a_stranger(capsys):
    def score(job):
        return RuntimeError(HOSTILE) if job.key.number == 3 else made_up_score(job)

    folder = SearchFolder.create(Path("[bold]"), SearchConfig(PENDULUM, population_size=4, stages=1))
    folder.run(InstantEngine(score=score))
    for arguments in (["top", "[bold]"], ["analyze", "[bold]"]):
        assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert SHOWN in shown
    assert "Pendulum-v1, [bold]" in shown


@pytest.mark.parametrize("in_colour", [False, True])
def test_the_environment_of_a_run_of_a_stranger(in_colour, tmp_path, capsys, monkeypatch):
    if in_colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
    shutil.copytree(OLD_RUN, tmp_path / "run")
    config = tmp_path / "run/config.toml"
    config.write_text(config.read_text().replace('"Pendulum-v1"', json.dumps(HOSTILE)))
    assert main(["curves", "run"]) == 0
    shown = capsys.readouterr().out
    assert ("\x1b[1m" in shown) == in_colour
    assert CLEARS_THE_SCREEN not in shown
    assert SHOWN in shown


@pytest.mark.parametrize("name", [HOSTILE, "\udcff not UTF-8", "\u202e turned around"], ids=ascii)
@pytest.mark.parametrize("arguments", [["analyze"], ["curves"], ["top"]], ids=" ".join)
def test_names_in_error_messages(arguments, name, capsys):
    assert main([*arguments, name]) == 2
    shown = capsys.readouterr().err
    assert is_harmless(shown)
    assert name.encode("unicode_escape").decode().split()[0] in shown.replace("\\\\", "\\")


def test_a_folder_of_any_name_is_read_and_written(tmp_path, capsys):
    name = f"\udcff not UTF-8{CLEARS_THE_SCREEN}"
    SearchFolder.create(tmp_path / "s", SearchConfig(PENDULUM, population_size=4, stages=1)).run(InstantEngine())
    (tmp_path / "s").rename(tmp_path / name)
    for arguments in (["analyze", name], ["report", name], ["export", name], ["analyze", name, "--csv", "-"]):
        assert main(arguments) == 0
    assert is_harmless(capsys.readouterr().out)
    # The commands on the page are typed by its readers.
    assert "--out &#x27;runs/" in (tmp_path / name / "report.html").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--env", "Pendulum-v1"],
        ["search", "--env", "Pendulum-v1", "--name", "mine"],
        ["benchmark", "--env", "Pendulum-v1", "--loss", "a2-winner"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_training_begins_where_pytorch_could_not_read_its_checkpoint(arguments, tmp_path, capsys):
    assert main([*arguments, "--out", "\udcff/x"]) == 2
    shown = capsys.readouterr().err
    assert is_harmless(shown)
    assert r"\udcff/x cannot be trained in: its path is not UTF-8" in shown
    assert list(tmp_path.iterdir()) == []


def test_no_training_goes_on_there(tmp_path, capsys):
    shutil.copytree(OLD_RUN, "\udcff")
    Path("\udcff/result.json").unlink()
    assert main(["train", "--resume", "\udcff"]) == 2
    assert "is not UTF-8" in capsys.readouterr().err


def test_all_commands_write_through_the_one_door():
    sources = Path(a2ls.cli.__file__).parent.rglob("*.py")
    makes_one = {path.name for path in sources if re.search(r"\bConsole\((?!Console)", path.read_text())}
    assert makes_one == {"_main.py"}  # For the list of all commands, in which nothing is anybody's.
