"""The default model per role: kept, read back, and never in the way where the file or a model is gone."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner

from engine.analyses.kind import Loaders
from engine.commands import main
from engine.core.errors import InputError, StorageError
from engine.core.files import EMBEDDED, home
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import AuditRecord
from engine.models.choices import FILE, READER, Defaults, read_defaults
from engine.models.defaults import (
    can_fill,
    candidates,
    choose_default,
    choose_dtype,
    default_for,
    default_generator,
    default_hosts,
    default_notes,
    resolve_writer,
)
from engine.models.registry import (
    ADDED,
    AddedModel,
    add_model,
    added_models,
    available_models,
    drop_added,
    load_writer,
    source_of,
)
from engine.workbench import Workbench
from tests.tiny import save_tiny

SERVED = "openai:judge@http://127.0.0.1:9/v1"


@pytest.fixture
def scribe(monkeypatch, tmp_path):
    """The folder of a local model called scribe; listed, never loaded."""
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    folder = tmp_path / "models" / "scribe"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_nothing_chosen_is_as_built_in():
    assert read_defaults() == (Defaults(), "")
    assert [default_for(role).model for role in ("writes", "scores", "judges")] == [READER, EMBEDDED, ""]
    assert resolve_writer("auto") == READER and default_generator() == EMBEDDED


def test_a_choice_is_read_back_and_leaves_the_other_roles(scribe):
    choose_default("writes", "scribe")
    choose_default("judges", SERVED)
    assert read_defaults() == (Defaults(writes="scribe", judges=SERVED), "")
    assert resolve_writer("auto") == default_generator() == "scribe" and resolve_writer("x") == "x"
    assert default_for("judges").model == SERVED and default_notes() == ()
    choose_default("writes", READER)
    assert read_defaults()[0].writes == READER
    assert [path.name for path in home().iterdir()] == [FILE]


def test_local_models_load_in_the_chosen_number_format_and_a_named_one_wins(tmp_path):
    folder = str(save_tiny(tmp_path / "tiny"))
    assert load_writer(folder).dtype == "float32"
    choose_dtype("bfloat16")
    assert read_defaults() == (Defaults(dtype="bfloat16"), "")
    assert (load_writer(folder).dtype, load_writer(folder, "auto").dtype) == ("bfloat16", "float32")


@pytest.mark.parametrize(
    "data", [b"{", b"[]", b'{"writes": 7}', b'{"dtype": "int3"}', b'{"writes": "\xff"}', b"", b'{"x":' + b"[" * 100_000]
)
def test_a_damaged_file_is_told_and_replaced_by_the_next_choice(data, scribe):
    (home() / FILE).write_bytes(data)
    stored, problem = read_defaults()
    assert stored == Defaults() and "cannot be read" in problem and "Settings" in problem
    assert default_notes() == (problem,)
    choose_default("scores", "scribe")
    assert read_defaults() == (Defaults(scores="scribe"), "")


def test_a_role_of_a_later_version_is_no_damage():
    (home() / FILE).write_text('{"scores": "x", "translates": "y"}')
    assert read_defaults() == (Defaults(scores="x"), "")


def test_a_model_that_is_gone_falls_back_says_so_and_counts_again_when_it_is_back(scribe, tmp_path):
    for role in ("writes", "scores", "judges"):
        choose_default(role, "scribe")
    shutil.move(scribe, tmp_path / "away")
    assert default_for("writes").model == READER and default_for("scores").model == EMBEDDED
    notes = default_notes()
    assert [note.partition(" scribe ")[0] for note in notes] == [
        f"The default {noun}" for noun in ("writer", "scorer", "judge")
    ]
    assert "embedded is used instead" in notes[1] and "none is used instead" in notes[2]
    choose_default("judges", "")
    shutil.move(tmp_path / "away", scribe)
    assert default_for("writes").model == default_for("scores").model == "scribe" and default_notes() == ()


def test_candidates_can_do_the_role(scribe):
    assert candidates("writes")[0] == READER and candidates("scores")[0] == EMBEDDED and candidates("judges")[0] == ""
    assert all("scribe" in candidates(role) for role in ("writes", "scores", "judges"))
    assert READER not in candidates("scores") + candidates("judges")
    assert not any(name.startswith("openai:MODEL") for name in candidates("writes"))  # a form, not a model
    assert can_fill(SERVED, "writes") and not can_fill(SERVED, "scores")


@pytest.mark.parametrize(("role", "name"), [("scores", SERVED), ("scores", READER), ("writes", ""), ("judges", "gone")])
def test_what_cannot_fill_a_role_is_refused(role, name, scribe):
    with pytest.raises(InputError, match="Choose one of"):
        choose_default(role, name)
    assert not (home() / FILE).exists()


def test_a_choice_that_cannot_be_saved_is_told(scribe):
    (home() / FILE).mkdir()
    assert "cannot be read" in default_for("writes").note
    with pytest.raises(StorageError, match="cannot be saved"):
        choose_default("writes", "scribe")


def test_the_host_of_a_served_default_is_named(scribe):
    assert default_hosts() == ()
    choose_default("judges", SERVED)
    choose_default("writes", "openai:here")  # its address is OPENAI_BASE_URL, which is listed with the environment's
    assert default_hosts() == ("http://127.0.0.1:9 when the default judge is asked: questions and passages",)


def test_a_password_is_not_saved():
    with pytest.raises(InputError, match="plain text") as told:
        choose_default("judges", "openai:m@https://user:secret@models.example/v1")
    assert "secret" not in str(told.value) and not (home() / FILE).exists()


def test_auto_means_the_defaults(scribe):
    save_tiny(scribe)
    choose_default("scores", "scribe")
    bench = Workbench(Settings().apply(["decoding.max_new_tokens=2"]))
    passages = AuditRecord(question="Why?", passages=("Ice melts.",), answer="").as_passages()
    assert bench.tools.scorer().name == bench.tools.scorer("reader").name == "scribe"
    assert bench.writer()("Why?", passages, Watch()).stamp.model == READER
    choose_default("writes", "scribe")
    assert bench.writer()("Why?", passages, Watch()).stamp.model == "scribe"
    assert bench.writer(READER)("Why?", passages, Watch()).stamp.model == READER
    assert Loaders().generator().name == "scribe"


def test_the_command_line_says_that_a_default_is_gone(scribe):
    choose_default("writes", "scribe")
    shutil.rmtree(scribe)
    for model, told in (((), True), (("--model", READER), False)):
        result = CliRunner().invoke(main, ["ask", "why", "--corpus", "absent", *model])
        assert ("The default writer scribe is no longer available" in result.stderr) is told
        assert "CorpusNotFound" in result.stderr


def test_an_added_model_is_listed_by_its_name_and_run_by_its_source(tmp_path):
    folder = save_tiny(tmp_path / "elsewhere" / "tiny")
    added = add_model(f" {folder} ", "Field notes")
    assert added == AddedModel(name="Field notes", source=str(folder)) and source_of("Field notes") == str(folder)
    card = next(card for card in available_models() if card.title == "Field notes")
    assert (card.name, card.where, card.can_score) == (str(folder), str(folder), True)
    assert load_writer("Field notes") is load_writer(str(folder))
    assert load_writer("Field notes").name == str(folder)  # a stamp must be readable on another machine
    choose_default("scores", "Field notes")
    assert default_for("scores").model == str(folder) and str(folder) in candidates("writes")
    assert drop_added("Field notes") and not drop_added("Field notes")
    assert default_for("scores").model == EMBEDDED and "is no longer available" in default_notes()[0]
    assert (folder / "config.json").is_file()


def test_a_served_model_is_added_to_write_and_to_judge_and_called_again():
    add_model(SERVED)
    add_model(SERVED, "Office")
    assert added_models() == ((AddedModel(name="Office", source=SERVED),), "")
    assert [SERVED in candidates(role) for role in ("writes", "scores", "judges")] == [True, False, True]


@pytest.mark.parametrize(
    "source",
    ["", "no such folder", "gone.gguf", "owner/name/more", "openai:", "openai:m@http://user:word@a.example/v1"],
)
def test_what_cannot_be_a_model_is_not_added(source):
    with pytest.raises(InputError):
        add_model(source)
    assert added_models() == ((), "")


def test_a_name_that_is_taken_is_refused(scribe):
    add_model(SERVED, "Office")
    for name in ("Office", "embedded", "reader", "auto", "scribe"):
        with pytest.raises(InputError, match="already"):
            add_model("owner/name", name)


def test_a_damaged_list_of_added_models_is_told_and_replaced():
    (home() / ADDED).write_text("[{")
    assert added_models()[0] == () and "cannot be read" in added_models()[1]
    add_model("owner/name")
    assert added_models() == ((AddedModel(name="name", source="owner/name"),), "")


def test_models_are_added_and_removed_by_command():
    run = CliRunner().invoke
    said = run(main, ["models", "add", SERVED, "--name", "Office"])
    assert said.exit_code == 0 and '"Office"' in said.output
    assert '"title":"Office"' in run(main, ["models"]).output.replace('": "', '":"')
    assert run(main, ["models", "remove", "Office"]).exit_code == 0 and added_models()[0] == ()
