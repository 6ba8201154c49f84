"""The file of DART's n-gram store (`full.trie`, `small.trie`; fvliang/DART 13f34a5), byte by byte.

Little-endian, nothing aligned: order u64, number of nodes u64, then for each node token i32, parent u64, count i32,
number of children u64, and for each child token i32, node u64. Node 0 is the root, with token and parent 0. Children
come in the order of a C++ hash table, which means nothing. Nodes come in the order in which they were made, so that a
parent always precedes its children. The root's count means nothing either: it overflows on a large text, and pruning
leaves it negative.
"""

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from refengine.decoder.drafters.dart_ngrams import Ints, Trie
from refengine.errors import BadInput

LAYOUTS = ()  # it serves others
HEADER, NODE, CHILD = struct.Struct("<QQ"), struct.Struct("<iQiQ"), struct.Struct("<iQ")
NODE_FIELDS = np.dtype([("token", "<i4"), ("parent", "<u8"), ("count", "<i4"), ("children", "<u8")])
CHILD_FIELDS = np.dtype([("token", "<i4"), ("node", "<u8")])


def read_trie(path: Path) -> Trie:
    """The store in a file. Raises BadInput, in one line, for a file that is anything else."""
    if not path.is_file():
        raise BadInput(f"{path}: no such file")
    raw = np.fromfile(path, dtype=np.uint8)
    if len(raw) < HEADER.size:
        raise BadInput(f"{path}: {len(raw)} bytes are too few for an n-gram store")
    order, count = HEADER.unpack_from(raw.data)
    if order < 1 or count < 1:
        raise BadInput(f"{path}: an n-gram store of order {order} with {count} nodes")
    places = _places(path, raw, count)
    nodes = _gathered(raw, places, NODE_FIELDS)
    owner = np.repeat(np.arange(count), nodes["children"].astype(np.int64))
    first = np.cumsum(nodes["children"]).astype(np.int64) - nodes["children"].astype(np.int64)
    children = places[owner] + NODE.size + CHILD.size * (np.arange(len(owner)) - first[owner])
    trie = Trie(int(order), nodes["token"].astype(np.int64), nodes["parent"].astype(np.int64),
                nodes["count"].astype(np.int64))  # fmt: skip
    if problem := _contradiction(trie, owner, _gathered(raw, children, CHILD_FIELDS)):
        raise BadInput(f"{path}: {problem}")
    return trie


def write_trie(trie: Trie, path: Path) -> None:
    """Write a store as the released code reads it; children in the order of their nodes."""
    children: list[list[int]] = [[] for _ in trie.tokens]
    for node, parent in enumerate(trie.parents[1:].tolist(), 1):
        children[parent].append(node)
    with path.open("wb") as file:
        file.write(HEADER.pack(trie.order, len(trie.tokens)))
        fields = zip(trie.tokens.tolist(), trie.parents.tolist(), trie.counts.tolist(), children, strict=True)
        for token, parent, count, below in fields:
            file.write(NODE.pack(token, parent, count, len(below)))
            file.writelines(CHILD.pack(int(trie.tokens[node]), node) for node in below)


def _places(path: Path, raw: NDArray[np.uint8], count: int) -> Ints:
    """Where each node begins."""
    if count > len(raw) // NODE.size:
        raise BadInput(f"{path}: {count} nodes do not fit into {len(raw)} bytes")
    places, place = np.empty(count, dtype=np.int64), HEADER.size
    for node in range(count):
        if place + NODE.size > len(raw):
            raise BadInput(f"{path}: truncated at node {node} of {count}")
        places[node] = place
        place += NODE.size + CHILD.size * NODE.unpack_from(raw.data, place)[3]
    if place != len(raw):
        what = "truncated in its last node" if place > len(raw) else f"{len(raw) - place} bytes after its last node"
        raise BadInput(f"{path}: {what}")
    return places


def _gathered(raw: NDArray[np.uint8], places: Ints, fields: np.dtype[np.void]) -> NDArray[np.void]:
    """The packed records that begin at `places`."""
    records = np.lib.stride_tricks.sliding_window_view(raw, fields.itemsize)[places]
    return np.ascontiguousarray(records).reshape(-1).view(fields)


def _contradiction(trie: Trie, owner: Ints, children: NDArray[np.void]) -> str:
    """What no text can have left behind, as a phrase; empty for a sound store. owner: whose child each record is."""
    nodes = np.arange(len(trie.tokens))
    if trie.tokens[0] or trie.parents[0]:
        return f"the root has token {trie.tokens[0]} and parent {trie.parents[0]}, expected 0 and 0"
    if (bad := _first(trie.tokens < 0)) is not None or (bad := _first(trie.counts < 0, 1)) is not None:
        return f"node {bad} has token {trie.tokens[bad]} and count {trie.counts[bad]}, and neither can be negative"
    if (bad := _first((trie.parents >= nodes) | (trie.parents < 0), 1)) is not None:
        return f"node {bad} has parent {trie.parents[bad]}, which does not precede it"
    ids = children["node"].astype(np.int64)
    if not np.array_equal(np.sort(ids), nodes[1:]):
        return "its nodes are not each the child of exactly one node"
    if (bad := _first((trie.parents[ids] != owner) | (trie.tokens[ids] != children["token"]))) is not None:
        return f"node {owner[bad]} lists node {ids[bad]} as a child, which names another parent or token"
    if len(np.unique((trie.parents[1:] << 32) | trie.tokens[1:])) < len(ids):
        return "two children of one node have one token"
    below = np.bincount(trie.parents[1:], weights=trie.counts[1:], minlength=len(nodes))
    if (bad := _first(below > trie.counts, 1)) is not None:
        return f"node {bad} occurred {trie.counts[bad]} times, and what continues it {int(below[bad])} times"
    depth, above = 0, nodes
    while above.any():
        depth, above = depth + 1, trie.parents[above]
    return f"a run of {depth} tokens in a store of order {trie.order}" if depth > trie.order else ""


def _first(wrong: NDArray[np.bool_], start: int = 0) -> int | None:
    found = np.flatnonzero(wrong[start:])
    return int(found[0]) + start if len(found) else None
