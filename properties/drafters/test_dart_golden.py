"""DART and its n-gram store against recordings of the official code."""

import itertools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from properties.helpers.coins import COINS, InOrder
from refengine.decoder import load_drafter, load_target
from refengine.decoder.checkpoints.layouts.dart_ngrams import read_trie, write_trie
from refengine.decoder.drafters.dart import Dart, TreeSearch
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.decoder.loop import Session, begin, nodes
from refengine.decoder.networks.feature_recurrence import Draft, FeatureRecurrence
from refengine.decoder.protocols import Target, Tokens
from refengine.engine.policy import greedy, pipeline, temperature, top_p
from refengine.engine.rules.point_mass import point_mass
from refengine.source_tree import FIXTURES

pytestmark = [pytest.mark.peer("dart")]

GOLDEN = FIXTURES / "golden" / "dart_A"
OFFICIAL = GOLDEN / "ngram" / "full.trie"


@pytest.fixture(scope="module")
def recording() -> tuple[Target, FeatureRecurrence, dict[str, Tensor]]:
    target = load_target(FIXTURES / "golden" / "target_dart_A", torch.float32)
    drafter = load_drafter(GOLDEN / "drafter", target)
    assert isinstance(drafter, FeatureRecurrence)
    return target, drafter, load_file(GOLDEN / "golden.safetensors")


def search_of(drafter: FeatureRecurrence) -> TreeSearch:
    assert isinstance(drafter.plan, TreeSearch)
    return drafter.plan


def levels_of(session: Session) -> Tensor:
    """Logits of every level that the session's drafter reads in its next round."""
    d: Any = session.drafter
    return search_of(d).levels(Draft(d.network, d.cache, d.length, (session.prompt + session.out)[-1], d.feature))


def paths(tokens: Tokens, parents: Tokens) -> list[Tokens]:
    """Every node by the tokens on its path; a parent is numbered from 0 and -1 is the root."""
    texts: list[Tokens] = [()]
    for token, parent in zip(tokens, parents, strict=True):
        texts.append((*texts[parent + 1], token))
    return texts[1:]


def recorded_paths(golden: dict[str, Tensor]) -> list[Tokens]:
    tokens, parents = (golden[f"tree.{name}"].tolist()[1:] for name in ("tokens", "parents"))
    return paths(tuple(tokens), tuple(parent - 1 for parent in parents))


def test_levels_and_trees_of_the_recording(
    recording: tuple[Target, FeatureRecurrence, dict[str, Tensor]],
) -> None:
    """Kills a norm once, a normed mask, a residual that is not the mask's, a slot at the wrong position or left in the
    cache, an n-gram term on the first level, a beam or a tree of the wrong paths."""
    target, drafter, t = recording
    session = Session(target, drafter, point_mass, pipeline(greedy()), 10**6)
    session.begin(tuple(t["prompt"].tolist()), COINS)
    for i, accepted in enumerate(t["greedy.accept_lengths"].tolist()):
        golden = {k.split(".", 2)[2]: v for k, v in t.items() if k.startswith(f"greedy.r{i}.")}
        if golden:  # the first eight rounds
            levels = levels_of(session)
            ours, wanted = levels[:, levels[0] > float("-inf")], golden["logits"]
            assert float((ours - wanted).abs().max()) <= 1e-5 * max(1.0, float(wanted.std()))
            scores = search_of(drafter).scores(levels, session.prompt + session.out)
            official = dict(zip(recorded_paths(golden), golden["tree.scores"].tolist()[1:], strict=True))
            assert scores.keys() == official.keys()
            # Seven levels' logarithms of logits that are off by 1e-5; the recording's smallest gap at a cut is 4e-4.
            assert max(abs(scores[path] - official[path]) for path in scores) <= 1e-4
        session.play(COINS)
        played = session.rounds[-1]
        assert not golden or set(paths(*nodes(played.block))) == official.keys()
        assert len(played.verdict.path) == accepted
    assert (session.prompt + session.out)[: len(t["greedy.output"])] == tuple(t["greedy.output"].tolist())


def test_a_sampling_run_of_the_recording(recording: tuple[Target, FeatureRecurrence, dict[str, Tensor]]) -> None:
    """Kills siblings judged in another order than by their token, a residual that is not the official one."""
    target, drafter, t = recording
    policy = pipeline(temperature(0.7), top_p(0.9))
    session = Session(target, drafter, point_mass, policy, 10**6)
    session.begin(tuple(t["prompt"].tolist()), InOrder([], int(t["sampled.r0.preceding_ids"][-1])))
    for i, accepted in enumerate(t["sampled.accept_lengths"].tolist()[:8]):  # of the others no uniforms were kept
        golden = {k.split(".", 2)[2]: v for k, v in t.items() if k.startswith(f"sampled.r{i}.")}
        coins = InOrder(golden["uniforms"].tolist(), int(golden["next_token"]))
        session.play(coins)
        played = session.rounds[-1]
        assert set(paths(*nodes(played.block))) == set(recorded_paths(golden))
        assert len(played.verdict.path) == accepted
        assert coins.uniforms == []
        assert coins.weights is not None
        assert float((coins.weights - golden["sample_p"]).abs().max()) <= 1e-5


def test_no_tensor_can_be_zeroed_or_swapped_unnoticed(
    recording: tuple[Target, FeatureRecurrence, dict[str, Tensor]],
) -> None:
    """Kills a tensor that is loaded and never used, or used in another's place."""
    target, drafter, _ = recording
    network: Any = drafter.network
    passed = begin(target, (14, 30, 81, 61, 82, 17), drafter.taps)

    def outputs(changed: dict[str, Tensor]) -> Tensor:
        other = FeatureRecurrence(Dart(network.shape, {**network.w.tensors, **changed}), drafter.plan)
        other.start((), passed)
        draft = Draft(other.network, other.cache, other.length, 22, other.feature)
        return search_of(drafter).levels(draft).clamp(min=-50.0)  # what cannot be drafted has -inf on both sides

    tensors, right = dict(network.w.tensors), outputs({})
    used = [key for key in tensors if key != "t2d"]  # t2d is held to d2t by the loader
    for key in used:
        assert float((outputs({key: torch.zeros_like(tensors[key])}) - right).abs().max()) > 1e-4, key
    for a, b in itertools.combinations(used, 2):
        if tensors[a].shape == tensors[b].shape and tensors[a].dtype == tensors[b].dtype:
            assert float((outputs({a: tensors[b], b: tensors[a]}) - right).abs().max()) > 1e-4, (a, b)


# --- the n-gram store ---

Child = tuple[int, int]  # token, node
Node = tuple[int, int, int, list[Child]]  # token, parent, count, children


def unpacked(file: bytes) -> tuple[int, list[Node]]:
    """The format's definition, read without the code under test."""
    (order, count), place, nodes = struct.unpack_from("<QQ", file), 16, list[Node]()
    for _ in range(count):
        token, parent, times, children = struct.unpack_from("<iQiQ", file, place)
        below = [struct.unpack_from("<iQ", file, place + 24 + 12 * j) for j in range(children)]
        nodes.append((token, parent, times, sorted(below)))
        place += 24 + 12 * children
    assert place == len(file)
    return order, nodes


def test_the_official_store_is_counted_and_written_alike(tmp_path: Path) -> None:
    """Kills a window too short at the end of a text, nodes in another order, a field of the wrong width or sign."""
    counted = Trie.of(load_file(GOLDEN / "golden.safetensors")["ngram.sequences"].tolist(), order=3)
    write_trie(counted, tmp_path / "full.trie")
    ours, theirs = (tmp_path / "full.trie").read_bytes(), OFFICIAL.read_bytes()
    assert unpacked(ours) == unpacked(theirs)  # children of a node are a hash table's, in no order
    read = read_trie(OFFICIAL)
    assert read.order == 3
    for field in ("tokens", "parents", "counts"):
        assert np.array_equal(getattr(read, field), getattr(counted, field))


def test_frequencies_are_the_official_ones() -> None:
    """Kills a back-off that stops at the first context that is known, or that goes on to the empty one."""
    held, store = load_file(GOLDEN / "golden.safetensors"), read_trie(OFFICIAL)
    for context, wanted in zip(held["ngram.query_contexts"].tolist(), held["ngram.query_probs"], strict=True):
        followed, seen = (torch.from_numpy(x).float() for x in store.following(tuple(context), range(96)))
        assert torch.equal(followed * (1 / seen), wanted)
