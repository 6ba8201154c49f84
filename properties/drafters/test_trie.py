"""The n-gram store: counted from text, and DART's file of it, byte by byte against the official one."""

import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refengine.decoder.checkpoints.layouts.dart_ngrams import read_trie
from refengine.decoder.drafters.dart_ngrams import Trie
from refengine.errors import BadInput
from refengine.source_tree import GOLDEN

GOLDEN = GOLDEN / "dart_A"
OFFICIAL = GOLDEN / "ngram" / "full.trie"

Child = tuple[int, int]  # token, node
Node = tuple[int, int, int, list[Child]]  # token, parent, count, children


def packed(order: int, nodes: list[Node]) -> bytes:
    file = struct.pack("<QQ", order, len(nodes))
    for token, parent, count, children in nodes:
        file += struct.pack("<iQiQ", token, parent, count, len(children))
        file += b"".join(struct.pack("<iQ", *child) for child in children)
    return file


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    texts=st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=4),
    context=st.lists(st.integers(0, 4), max_size=5),
    order=st.integers(1, 4),
)
def test_frequencies_are_their_definition(texts: list[list[int]], context: list[int], order: int) -> None:
    """Kills a run across two texts, a context of another length, a count of what follows instead of what occurs."""
    runs = Counter(
        tuple(text[i:j])
        for text in texts
        for i in range(len(text))
        for j in range(i + 1, min(i + order, len(text)) + 1)
    )
    followed, seen = Trie.of(texts, order).following(tuple(context), range(6))
    for token in range(6):
        ends = [tuple(context[i:]) for i in range(max(0, len(context) - order + 1), len(context))]
        known = next((end for end in ends if runs[*end, token]), None)
        assert (followed[token], seen[token]) == ((runs[*known, token], runs[known]) if known else (0, 1))


def test_a_store_has_an_order() -> None:
    """Kills a store of order 0, which would count nothing and say so nowhere."""
    with pytest.raises(ValueError, match="order of at least 1, not 0"):
        Trie.of([[1, 2]], order=0)


SMALL: list[Node] = [(0, 0, 4, [(7, 1), (9, 3)]), (7, 0, 3, [(9, 2)]), (9, 1, 2, []), (9, 0, 1, [])]


def with_node(place: int, node: Node) -> bytes:
    return packed(2, [node if i == place else other for i, other in enumerate(SMALL)])


def test_what_pruning_leaves_is_read(tmp_path: Path) -> None:
    """Kills a reader that refuses a negative root, and a frequency of nothing in nothing."""
    nodes: list[Node] = [(0, 0, -5, SMALL[0][3]), (7, 0, 0, [(9, 2)]), (9, 1, 0, []), SMALL[3]]
    (tmp_path / "small.trie").write_bytes(packed(2, nodes))
    followed, seen = read_trie(tmp_path / "small.trie").following((7,), [9])
    assert (followed.tolist(), seen.tolist()) == ([0], [1])


DAMAGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "0 bytes are too few"),
    "no order": (lambda: packed(0, SMALL), "an n-gram store of order 0 with 4 nodes"),
    "no node": (lambda: packed(2, []), "an n-gram store of order 2 with 0 nodes"),
    "other format": (lambda: b"safetensors" * 20, "nodes do not fit into 220 bytes"),
    "more nodes": (lambda: struct.pack("<QQ", 2, 6) + packed(2, SMALL)[16:], "truncated at node 4 of 6"),
    "cut in a node": (lambda: packed(2, SMALL)[:-20], "truncated at node 3 of 4"),
    "cut in a child": (lambda: packed(2, [*SMALL[:3], (9, 0, 1, [(1, 4)])])[:-6], "truncated in its last node"),
    "longer": (lambda: packed(2, SMALL) + b"\0", "1 bytes after its last node"),
    "root": (lambda: with_node(0, (1, 0, 4, SMALL[0][3])), "the root has token 1 and parent 0"),
    "negative token": (lambda: with_node(3, (-9, 0, 1, [])), "node 3 has token -9 and count 1"),
    "negative count": (lambda: with_node(3, (9, 0, -1, [])), "node 3 has token 9 and count -1"),
    "cycle": (lambda: with_node(1, (7, 2, 3, [(9, 2)])), "node 1 has parent 2, which does not precede it"),
    "orphan": (lambda: with_node(1, (7, 0, 3, [])), "not each the child of exactly one node"),
    "two parents": (lambda: with_node(3, (9, 0, 1, [(9, 2)])), "not each the child of exactly one node"),
    "other parent": (lambda: with_node(2, (9, 0, 2, [])), "node 1 lists node 2 as a child, which names another"),
    "other token": (lambda: with_node(2, (8, 1, 2, [])), "node 1 lists node 2 as a child, which names another"),
    "twins": (
        lambda: packed(2, [(0, 0, 4, [(7, 1), (7, 3)]), SMALL[1], SMALL[2], (7, 0, 1, [])]),
        "two children of one node have one token",
    ),
    "more than all": (lambda: with_node(2, (9, 1, 4, [])), "node 1 occurred 3 times, and what continues it 4 times"),
    "too long a run": (lambda: packed(1, SMALL), "a run of 2 tokens in a store of order 1"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    """Kills a reader that takes a store for sound because its length is right."""
    (tmp_path / "sound.trie").write_bytes(packed(2, SMALL))
    read_trie(tmp_path / "sound.trie")
    make, message = DAMAGE[damage]
    (tmp_path / "full.trie").write_bytes(make())
    with pytest.raises(BadInput, match=message) as raised:
        read_trie(tmp_path / "full.trie")
    assert "\n" not in str(raised.value)
    assert str(tmp_path) in str(raised.value)
