"""The trees that Medusa ships (FasterDecoding/Medusa e2a5d20, medusa_choices.py), as data.

Every one has 63 nodes. A node is a path of candidate numbers: (2, 0) is the likeliest token of head 1 below the third
likeliest of head 0. In all of them the children of a node are its candidates 0, 1, 2, ... without a gap, so a tree is
written as `path:children` of its inner nodes, the root's path being empty.
"""

from typing import TypeAlias

Path: TypeAlias = tuple[int, ...]

_SHIPPED = {
    "mc_sim_7b_63": (
        ":10 0:10 1:7 2:3 3:2 4:1 5:1 6:1 7:1 8:1 9:1 00:10 01:3 02:2 03:1 04:1 05:1 06:1 07:1 10:2 20:1 000:2"
    ),
    "vicuna_7b_stage2": (
        ":10 0:10 1:5 2:2 3:2 4:1 5:1 6:1 7:1 00:9 01:4 02:2 03:1 04:1 05:1 10:3 11:1 20:1 000:4 001:1 002:1 010:1"
    ),
    "vicuna_7b_stage1_ablation": (
        ":10 0:10 1:4 2:2 3:2 4:1 5:1 6:1 00:10 01:4 02:2 03:1 04:1 05:1 10:3 11:1 20:1 30:1 000:4 001:1 002:1 010:1"
    ),
    "vicuna_7b_stage1": (":10 0:10 1:7 2:4 3:3 4:2 5:2 6:1 7:1 8:1 9:1 00:9 01:3 02:2 03:1 04:1 05:1 10:2 20:1 000:1"),
    "vicuna_13b_stage2": (
        ":10 0:10 1:4 2:2 3:1 4:1 5:1 00:10 01:4 02:2 03:1 04:1 05:1 10:3 11:1 20:1 30:1 000:4 001:2 002:1 010:1 100:1"
    ),
    "vicuna_13b_stage1": (
        ":10 0:10 1:7 2:4 3:2 4:2 5:1 6:1 7:1 8:1 00:10 01:4 02:2 03:1 04:1 05:1 10:2 11:1 20:1 000:1"
    ),
    "vicuna_33b_stage2": (
        ":10 0:10 1:5 2:3 3:2 4:1 5:1 6:1 7:1 00:10 01:4 02:2 03:1 04:1 05:1 10:3 11:1 20:1 000:3 001:1 010:1"
    ),
    "vicuna_33b_stage1": (":10 0:10 1:8 2:5 3:3 4:2 5:2 6:1 7:1 8:1 9:1 00:9 01:3 02:2 03:1 04:1 10:2 20:1"),
    "zephyr_stage2": (":10 0:10 1:6 2:4 3:2 4:2 5:1 6:1 7:1 00:10 01:4 02:2 03:1 04:1 05:1 10:2 11:1 20:1 000:2 001:1"),
}


def ordered(paths: set[Path]) -> tuple[Path, ...]:
    """Paths by length, then lexicographically: the order of Medusa's tree slots. Raises ValueError for an orphan."""
    if orphans := sorted(path for path in paths if path[:-1] and path[:-1] not in paths):
        raise ValueError(f"node {orphans[0]} of the tree has no parent in it")
    return tuple(sorted(paths, key=lambda path: (len(path), path)))


def _unfold(text: str) -> tuple[Path, ...]:
    inner = (entry.split(":") for entry in text.split())
    return ordered({(*map(int, path), child) for path, children in inner for child in range(int(children))})


TREES: dict[str, tuple[Path, ...]] = {name: _unfold(text) for name, text in _SHIPPED.items()}


def tree_for(base_model: str) -> str:
    """The shipped tree that the released code picks by the base model's name.

    The heads of Medusa-1 were tuned together with the `stage1` trees, and are given `stage2` by this rule all the same.
    """
    if "vicuna" in base_model:
        for size in ("7b", "13b", "33b"):
            if size in base_model:
                return f"vicuna_{size}_stage2"
    return "zephyr_stage2" if "zephyr" in base_model else "mc_sim_7b_63"
