"""DART on the tiny target: the tree search, and what a checkpoint may not get wrong."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from properties.helpers.checkpoints.damaged import Edit, damaged
from properties.helpers.coins import COINS
from refengine.commands import verify_checkpoint
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.dart_ngrams import read_trie, write_trie
from refengine.decoder.drafters.dart import TreeSearch
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.decoder.loop import Session, begin, nodes
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.networks.rope import Linear, Rope
from refengine.decoder.protocols import Tokens, Turn
from refengine.engine.policy import pipeline, temperature
from refengine.engine.rules.point_mass import point_mass
from refengine.errors import BadInput
from refengine.selfcheck.drafters.laws.cells import ONLY
from refengine.source_tree import FIXTURES

GOLDEN, TINY = FIXTURES / "golden" / "dart_A" / "drafter", FIXTURES / "dart" / "drafter"
TARGET = load_target(FIXTURES / "tiny" / "target", torch.float64)
SAMPLED = pipeline(temperature(0.8))


def search_of(drafter: FeatureRecurrence) -> TreeSearch:
    assert isinstance(drafter.plan, TreeSearch)
    return drafter.plan


def paths(tokens: Tokens, parents: Tokens) -> list[Tokens]:
    """Every node by the tokens on its path; a parent is numbered from 0 and -1 is the root."""
    texts: list[Tokens] = [()]
    for token, parent in zip(tokens, parents, strict=True):
        texts.append((*texts[parent + 1], token))
    return texts[1:]


# --- the tree ---------------------------------------------------------------------------------------------------------


def loaded(**sizes: Any) -> FeatureRecurrence:
    drafter = load_drafter(TINY, TARGET)
    drafter.plan = replace(search_of(drafter), **sizes)
    return drafter


def by_definition(search: TreeSearch, levels: list[list[float]], prefix: Tokens) -> dict[Tokens, float]:
    """The tree from its definition, every path scored from its root, in Python's floats."""

    def score(path: Tokens) -> float:
        total = 0.0
        for level, token in enumerate(path):
            row = levels[level]
            best = sorted((x for x in row if x > float("-inf")), reverse=True)[: search.top_k]
            p = math.exp(row[token]) / sum(map(math.exp, best))
            gain = 0.9**level * math.log(min(1.0, p + 1e-10))
            if level:
                followed, seen = search.store.following(prefix + path[:level], [token])
                gain += 0.5 * math.log(min(1.0, followed[0] / seen[0] + 1e-10))
            total += (level + 1) ** -0.7 * gain
        return total

    pool, beam = dict[Tokens, float](), [()]
    for row in levels:
        tokens = sorted((x for x in range(len(row)) if row[x] > float("-inf")), key=lambda x: -row[x])[: search.top_k]
        grown = {(*path, x): score((*path, x)) for path in beam for x in tokens}
        pool |= grown
        beam = sorted(grown, key=lambda path: (path[-1] == search.eos, -grown[path]))[: search.beam]
    return {path: pool[path] for path in sorted(pool, key=lambda path: -pool[path])[: search.total]}


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    prompt=st.lists(st.integers(0, 6), min_size=2, max_size=7),
    total=st.integers(1, 60),
    beam=st.integers(1, 6),
    top_k=st.integers(1, 8),
    eos=st.sampled_from([None, 2, 4]),
)
def test_the_tree_is_its_definition(prompt: list[int], total: int, beam: int, top_k: int, eos: int | None) -> None:
    """Kills a score of the last token alone, weights of another level, an end of text that is grown like any token."""
    drafter, prefix = loaded(total=total, beam=beam, top_k=top_k, eos=eos), tuple(prompt)
    drafter.start(prefix[:-1], begin(TARGET, prefix[:-1], drafter.taps))
    draft = Draft(drafter.network, drafter.cache, drafter.length, prefix[-1], drafter.feature)
    levels = search_of(drafter).levels(draft)
    ours = search_of(drafter).scores(levels, prefix)
    wanted = by_definition(search_of(drafter), levels.tolist(), prefix)
    assert ours.keys() == wanted.keys()
    assert all(abs(ours[path] - wanted[path]) < 1e-12 for path in ours)
    block = drafter.propose(Turn(prefix, prefix, SAMPLED, COINS))
    assert set(paths(*nodes(block))) == ours.keys()


def ranked(search: TreeSearch, levels: torch.Tensor, prefix: Tokens) -> list[Tokens]:
    """The tree with its ties as stated, every path scored from its root by the operations that the search uses."""

    def log(x: float) -> float:
        return float(torch.tensor(x + 1e-10, dtype=torch.float64).clamp(max=1.0).log())

    def score(path: Tokens) -> float:
        total = 0.0
        for level, token in enumerate(path):
            gain = log(float(levels[level][tokens[level]].softmax(-1)[tokens[level].index(token)])) * 0.9**level
            if level:
                ((followed,), (seen,)) = search.store.following(prefix + path[:level], [token])
                gain += 0.5 * log(float(followed) * (1 / float(seen)))
            total += (level + 1) ** -0.7 * gain
        return total

    rows = [row.tolist() for row in levels]
    drafted = [[x for x in range(len(row)) if row[x] > float("-inf")] for row in rows]
    tokens = [sorted(x, key=lambda x: (-row[x], x))[: search.top_k] for x, row in zip(drafted, rows, strict=True)]
    pool, beam = list[Tokens](), [()]
    for best in tokens:
        grown = [(*path, x) for path in beam for x in best]
        pool += grown
        beam = sorted(grown, key=lambda path: (path[-1] == search.eos, -score(path), grown.index(path)))[: search.beam]
    return sorted(pool, key=lambda path: (-score(path), pool.index(path)))[: search.total]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    levels=st.lists(
        st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.0, -math.inf]), min_size=5, max_size=5).filter(
            lambda row: max(row) > -math.inf
        ),
        min_size=1,
        max_size=4,
    ),
    text=st.lists(st.integers(0, 4), max_size=8),
    total=st.integers(1, 40),
    beam=st.integers(1, 4),
    top_k=st.integers(1, 5),
    eos=st.sampled_from([None, 0, 2]),
)
def test_ties_go_to_the_path_that_was_there_first(
    levels: list[list[float]], text: list[int], total: int, beam: int, top_k: int, eos: int | None
) -> None:
    """Kills a sort that is not stable, of a level, of the beam or of the pool; and a child without its parent."""
    search = TreeSearch(len(levels) - 1, Trie.of([text, [3, 3, 3]]), eos, top_k, beam, total)
    rows = torch.tensor(levels, dtype=torch.float64)
    kept = list(search.scores(rows, (3, 3)))
    assert kept == ranked(search, rows, (3, 3))
    assert all(path[:-1] in kept[:place] for place, path in enumerate(kept) if len(path) > 1)


def test_a_tied_child_stays_behind_its_parent() -> None:
    """Kills an orphan: a certain token that always follows is worth exactly as much as what it follows."""
    search = TreeSearch(2, Trie.of([[3, 3, 3, 3]] * 2), None, total=1)
    levels = torch.full((3, 8), float("-inf"), dtype=torch.float64)
    levels[:, 3] = 0.0
    assert search.scores(levels, (3, 3)).keys() == {(3,)}


def test_a_whole_tree_is_accepted_to_its_depth() -> None:
    """Kills, as an oracle, a candidate that is lost although the tree holds every continuation there is."""
    session = Session(TARGET, loaded(top_k=8, beam=216, total=258), point_mass, pipeline(ONLY, temperature(1.0)), 24)
    session.begin((5, 4, 0, 4), COINS)
    while not session.done:
        session.play(COINS)
        assert len(session.rounds[-1].verdict.path) == 3


# --- checkpoints ------------------------------------------------------------------------------------------------------


DAMAGE: dict[str, tuple[Edit, str]] = {
    "missing": (lambda t, c: t.pop("midlayer.mask_rep"), "tensor midlayer.mask_rep is missing"),
    "extra": (lambda t, c: t.update(stray=torch.zeros(2)), "tensor stray is in the file"),
    "half a mask": (
        lambda t, c: t.update({"midlayer.mask_rep": torch.ones(32)}),
        r"tensor midlayer.mask_rep has shape \[32\], the config asks for \[64\]",
    ),
    "other precision": (lambda t, c: t.update({"norm.weight": t["norm.weight"].half()}), "has dtype float16"),
    "other head width": (lambda t, c: c.update(head_dim=4), r"q_proj.weight has shape \[16, 64\], .* \[8, 64\]"),
    "head width by division": (lambda t, c: c.pop("head_dim"), r"q_proj.weight has shape \[16, 64\], .* \[32, 64\]"),
    "key heads by default": (
        lambda t, c: c.update(num_key_value_heads=None),
        r"k_proj.weight has shape \[8, 64\], .* \[16, 64\]",
    ),
    "no masks": (lambda t, c: c.update(draft_length=0), "draft_length is 0, expected an integer of at least 1"),
    "more layers": (lambda t, c: c.update(num_hidden_layers=2), "num_hidden_layers is not 1"),
    "biases": (lambda t, c: c.update(attention_bias=True), "biases are not part of this layout"),
    "activation": (lambda t, c: c.update(hidden_act="gelu"), "hidden_act is 'gelu', expected 'silu'"),
    "scaled rope": (
        lambda t, c: c.update(rope_scaling={"type": "yarn", "factor": 2.0}),
        "rope_type is 'yarn', and only unscaled",
    ),
    "other target": (lambda t, c: c.update(vocab_size=9), "vocab_size is 9, and the target has 8"),
    "other features": (lambda t, c: c.update(target_hidden_size=48), "is 48, and the target has 32"),
    "other width": (
        lambda t, c: c.update(hidden_size=48, target_hidden_size=32),
        "hidden_size is 48, and the target's embeddings have width 32",
    ),
    "maps disagree": (lambda t, c: t.update(t2d=t["t2d"].roll(1)), "d2t and t2d disagree"),
    "embeddings of its own": (
        lambda t, c: t.update({"embed_tokens.weight": torch.ones(8, 32)}),
        "embed_tokens.weight is not the target's",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a reader that ignores, pads, casts or guesses around what a checkpoint gets wrong."""
    change, message = DAMAGE[damage]
    folder = damaged(TINY, tmp_path / "drafter", change)
    with pytest.raises(BadInput, match=message) as raised:
        load_drafter(folder, TARGET)
    assert "\n" not in str(raised.value)
    assert str(folder) in str(raised.value)


def test_a_linear_rope_is_read_as_the_released_code_reads_it(tmp_path: Path) -> None:
    """Kills a base that is kept beside a stretching: the released code falls back to 10000."""
    folder = shutil.copytree(TINY, tmp_path / "drafter")
    config = json.loads((folder / "config.json").read_text())
    config.update(rope_theta=1e6, rope_scaling={"type": "linear", "factor": 4.0})
    (folder / "config.json").write_text(json.dumps(config))
    network: Any = load_drafter(folder, TARGET).network
    assert network.shape.rope == Rope(10000.0, Linear(4.0))


def test_the_targets_embeddings_may_be_in_the_file(tmp_path: Path) -> None:
    """Kills a reader that calls them left over: a file may carry what was frozen in training."""
    folder = shutil.copytree(TINY, tmp_path / "drafter")
    own = load_file(FIXTURES / "tiny" / "target" / "model.safetensors")["model.embed_tokens.weight"]
    save_file(load_file(folder / "model.safetensors") | {"embed_tokens.weight": own}, folder / "model.safetensors")
    load_drafter(folder, TARGET)


def test_where_the_store_is_looked_for(tmp_path: Path) -> None:
    """Kills a store that is guessed at, a small one that is preferred, and one that was given and not used."""
    folder, other = shutil.copytree(TINY, tmp_path / "drafter"), tmp_path / "other"
    other.mkdir()
    for name, text in (("small.trie", [[1, 2]]), ("full.trie", [[1, 2, 3]])):
        write_trie(Trie.of(text), other / name)

    def size(ngram: Path | None) -> int:
        drafter = load_drafter(folder, TARGET, ngram=ngram)
        assert isinstance(drafter, FeatureRecurrence)
        return len(search_of(drafter).store.tokens)

    assert size(None) == len(read_trie(TINY / "full.trie").tokens) > 7
    assert (size(other), size(other / "small.trie")) == (7, 4)
    (folder / "full.trie").unlink()
    (tmp_path / "ngram").mkdir()
    shutil.copy(other / "small.trie", tmp_path / "ngram")
    assert size(None) == 4
    (tmp_path / "ngram" / "small.trie").unlink()
    with pytest.raises(BadInput, match=r"no full\.trie or small\.trie; a DART drafter needs its n-gram store: --ngram"):
        load_drafter(folder, TARGET)
    with pytest.raises(BadInput, match=r"none\.trie: no such file"):
        load_drafter(folder, TARGET, ngram=other / "none.trie")
    for text, order, message in (([[8]], 3, "token 8 is outside the target's 8 tokens"), ([[1]], 5, "order 5")):
        write_trie(Trie.of(text, order), other / "full.trie")
        with pytest.raises(BadInput, match=message):
            load_drafter(folder, TARGET, ngram=other)


def test_a_released_layout_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills a battery that cannot find the store, or that never compares a state."""
    monkeypatch.setattr(verify_checkpoint, "LENGTHS", (4, 9))
    monkeypatch.setattr(verify_checkpoint, "NEW_TOKENS", 16)
    where = str(TINY), str(FIXTURES / "tiny" / "target")
    found = verify_checkpoint.verify(*where, dtype="float64", ngram=str(TINY / "full.trie"))
    by_id = {finding.id: finding for finding in found}
    assert by_id.pop("checkpoint/acceptance").verdict == "not tested"
    assert {finding.verdict for finding in by_id.values()} == {"consistent"}
    assert by_id["checkpoint/state"].numbers["states compared"] > 5
