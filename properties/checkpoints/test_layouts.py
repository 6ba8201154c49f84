"""Which layout a folder is of: exactly one, read once, with the options that it takes and no other."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from properties.helpers.checkpoints.damaged import damaged
from properties.helpers.coins import COINS
from properties.helpers.schemas import special
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.dart_ngrams import write_trie
from refengine.decoder.checkpoints.load import LAYOUTS, WITHOUT_WEIGHTS, layout_of, options_of
from refengine.decoder.checkpoints.reading import checkpoint
from refengine.decoder.checkpoints.reading.checkpoint import Checkpoint, Layout
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.decoder.drafters.dspark_schedule import Load
from refengine.decoder.drafters.eagle_trees import MC_SIM_7B_63, Chain, StaticTree
from refengine.decoder.loop import Session
from refengine.decoder.rows import depth
from refengine.engine.policy import pipeline, temperature
from refengine.errors import BadInput
from refengine.selfcheck.drafters.checks import along
from refengine.selfcheck.drafters.laws.memo import content
from refengine.selfcheck.drafters.laws.remembering import target_that_remembers
from refengine.selfcheck.drafters.table import ROWS
from refengine.source_tree import FIXTURES, GOLDEN

TARGET = load_target(FIXTURES / "tiny" / "target", torch.float64)
FOLDERS = sorted({row.folder for row in ROWS.values()} - {""})
RECORDED = sorted(str(folder.relative_to(GOLDEN)) for folder in GOLDEN.glob("*/drafter"))


@pytest.mark.parametrize("folder", [*(FIXTURES / x for x in FOLDERS), *(GOLDEN / x for x in RECORDED)], ids=str)
def test_a_folder_is_of_one_layout(folder: Path) -> None:
    """Kills a file that two readers would take, one of them silently wrong."""
    here = Checkpoint(folder)
    assert len([layout for layout in LAYOUTS if layout.matches(here) and not layout.general]) <= 1
    assert layout_of(here) in LAYOUTS


def test_every_layout_has_a_fixture() -> None:
    """Kills a layout that is registered and never met."""
    met = {layout_of(Checkpoint(FIXTURES / x)).name for x in FOLDERS}
    met |= {layout_of(Checkpoint(GOLDEN / x)).name for x in RECORDED}
    met.add(layout_of(Checkpoint(FIXTURES / "qwen_mtp" / "target")).name)
    assert met == {layout.name for layout in LAYOUTS}
    assert len({layout.name for layout in LAYOUTS}) == len(LAYOUTS)


def test_a_folder_of_two_layouts_is_refused_with_both_names(tmp_path: Path) -> None:
    """Kills a precedence of layouts that nobody knows of."""
    folder = damaged(FIXTURES / "heads" / "medusa", tmp_path / "drafter", lambda t, c: c.update(draft_length=3))
    with pytest.raises(BadInput, match="it can be read as DART or as Medusa") as raised:
        load_drafter(folder, TARGET)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "tiny/dspark",
            {"gamma": 3},
            r"gamma is for .* \(DSpark of DeepSpec\) takes threshold or load",
        ),
        (
            "tiny/ar",
            {"threshold": 0.5},
            r"threshold is for DSpark .* \(a draft model of its own\) takes gamma",
        ),
        ("heads/medusa", {"ngram": Path("x.trie")}, r"ngram is for DART, and this drafter \(Medusa\) takes tree"),
        (
            "tiny/ar",
            {"load": Load(((1, 1.0), (2, 2.0)))},
            "load is for DSpark of DeepSpec or DSpark of speculators",
        ),
        ("prompt_lookup", {"load": Load(((1, 1.0), (2, 2.0)))}, r"\(prompt_lookup\) takes gamma"),
    ],
)
def test_an_option_that_a_layout_does_not_take_is_refused(name: str, options: dict[str, Any], said: str) -> None:
    """Kills an option that is silently ignored: the user believes that it holds."""
    path = name if "/" not in name else FIXTURES / name
    with pytest.raises(BadInput, match=said) as raised:
        load_drafter(path, TARGET, **options)
    assert "\n" not in str(raised.value)
    assert load_drafter(path, TARGET, **dict.fromkeys(options)), "None is an option that is not given"


# Two values of an option under which the same rounds must differ; of others what a row gives, and none.
VALUES: dict[str, Any] = {
    "gamma": (1, 3),
    "length": (1, 3),
    "plan": (Chain(1), Chain(3)),
    "threshold": (0.0, 1.0),
    "load": (Load(((1, 1.0), (2, 1.0))), Load(((1, 1.0), (2, 9.0)))),
    "markov": (True, False),
    "greedy": (True, False),
    "recycled": ("normed", "raw"),
    "stale_keys": (False, True),
    "ngram": ([(1, 1, 1)], [(2, 2, 2)] * 9),  # texts of a store
}
TAKEN = [(layout, name) for layout in LAYOUTS for name in options_of(layout)]


def folders_of(layout: Layout) -> list[tuple[str, str]]:
    """Its fixtures, and the target of each."""
    pairs = sorted({(row.folder, row.target) for row in ROWS.values() if row.folder} | {("qwen_mtp/target",) * 2})
    return [(folder, target) for folder, target in pairs if layout_of(Checkpoint(FIXTURES / folder)) is layout]


@pytest.mark.parametrize(("layout", "name"), TAKEN, ids=[f"{layout.name}, {name}" for layout, name in TAKEN])
@torch.inference_mode()
def test_every_option_that_a_layout_takes_has_an_effect(layout: Layout, name: str, tmp_path: Path) -> None:
    """Kills an option that one of the layouts takes and drops: on each of its fixtures it is refused or it shows."""
    values, shown = VALUES.get(name) or (None, tabled(layout, name)), 0
    if name == "ngram":
        for texts in values:
            write_trie(Trie.of(texts), tmp_path / f"{len(texts)}.trie")
        values = [tmp_path / f"{len(texts)}.trie" for texts in values]
    for folder, of in folders_of(layout):
        try:
            asked = [{} if x is None else {name: x} for x in values]
            drafters = [layout.load(Checkpoint(FIXTURES / folder), played_on(of), **options) for options in asked]
        except BadInput:  # it has no such head
            continue
        assert three_rounds(drafters[0], of) != three_rounds(drafters[1], of), folder
        shown += 1
    assert shown


def tabled(layout: Layout, name: str) -> Any:
    """What the table of drafters gives the option on one of the layout's fixtures."""
    folders = {folder for folder, _ in folders_of(layout)}
    return next(row.options[name] for row in ROWS.values() if row.folder in folders and name in row.options)


@cache
def played_on(folder: str) -> Any:
    return target_that_remembers(folder)


def three_rounds(drafter: Any, folder: str) -> list[Any]:
    """What it proposes in three rounds in which everything is refused."""
    session = Session(played_on(folder), drafter, along((), 3), pipeline(temperature(1.0)), 10**6)
    session.begin((5, 4, 0, 4, 0, 6, 3, 2, 4), COINS)
    for _ in range(3):
        session.play(COINS)
    blocks = [played.block for played in session.rounds]
    return [content((block.tokens, block.parents, block.q)) for block in blocks]


WITHOUT_FILES = [(name, "tiny/target") for name in WITHOUT_WEIGHTS]
COUNTED = WITHOUT_FILES + [
    pair
    for layout, name in TAKEN
    if name in ("gamma", "length")
    for pair in folders_of(layout)
    if not special(pair[0], "drafts")
]


@pytest.mark.parametrize(("folder", "of"), COUNTED, ids=[folder for folder, _ in COUNTED])
@torch.inference_mode()
def test_so_many_tokens_are_drafted_as_are_asked_for(folder: str, of: str) -> None:
    """Kills a number of drafts that is off by one, for any number and where none is given."""
    path = folder if (folder, of) in WITHOUT_FILES else FIXTURES / folder
    name = "length" if "length" in options_of_path(path) else "gamma"
    for count in (1, 2, 5, None):
        drafter: Any = load_drafter(path, played_on(of), **{name: count})
        session = Session(played_on(of), drafter, along((), 3), pipeline(temperature(1.0)), 10**6)
        session.begin((5, 4, 0, 4, 0, 6, 3, 2, 4), COINS)
        for _ in range(16):  # a pool of n-grams fills, and the text repeats itself
            session.play(COINS)
        wanted = count or (4 if name == "gamma" else drafter.plan.length)
        assert max(depth(played.block) for played in session.rounds) == wanted


def options_of_path(path: Path | str) -> list[str]:
    return ["gamma"] if path in WITHOUT_WEIGHTS else options_of(layout_of(Checkpoint(Path(path))))


def test_several_modules_take_no_number_of_drafts() -> None:
    """Kills a number of drafts that a chain of modules ignores: each is used once."""
    folder = FIXTURES / "deepseek" / "mtp2"
    with pytest.raises(BadInput, match="gamma is 3, and each of its 2 modules drafts one token"):
        load_drafter(folder, load_target(folder, torch.float64), gamma=3)


def test_a_threshold_without_a_head_is_one_line() -> None:
    """Kills a stack trace where a confidence is asked of a drafter that has none."""
    with pytest.raises(BadInput, match="this checkpoint has no confidence head"):
        load_drafter(FIXTURES / "dflash" / "deepspec", TARGET, threshold=0.5)


@pytest.mark.parametrize("folder", ["eagle/eagle1", "eagle/eagle3", "dspark/speculators", "heads/medusa"])
def test_config_and_headers_are_read_once(folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kills a folder that is sniffed by one reading and loaded by another: between the two it may have changed."""
    reads: list[str] = []

    def counted(name: str) -> None:
        original = getattr(checkpoint, name)
        monkeypatch.setattr(checkpoint, name, lambda *arguments: (reads.append(name), original(*arguments))[1])

    counted("read_config")
    counted("tensor_headers")
    load_drafter(shutil.copytree(FIXTURES / folder, tmp_path / "drafter"), TARGET)
    assert sorted(reads) == ["read_config", "tensor_headers"]


def test_eagle1_grows_its_own_tree() -> None:
    """Kills EAGLE-1 that is released with one tree and loaded with EAGLE-2's."""
    drafter: Any = load_drafter(FIXTURES / "eagle" / "eagle1", TARGET)
    assert drafter.plan == StaticTree(MC_SIM_7B_63)
