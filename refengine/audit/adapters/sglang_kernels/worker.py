"""SGLang's verification kernels over rows of ours, by Triton's interpreter. Runs under SGLang's Python: `speak.py` says
what is here.

Executed are the files of KEPT, as they are installed, with torch.compile switched off. Ours are the coins where they
are arguments, drawn as the engine draws them, and `log1p`, which is a GPU's library. A request at temperature 0 comes
as rows with one token, which is how the engine hands it over.
"""

import importlib
import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

spec: Any = importlib.util.spec_from_file_location("refengine_alone", Path(__file__).parents[1] / "alone.py")
alone = importlib.util.module_from_spec(spec)
spec.loader.exec_module(alone)

import torch  # noqa: E402 (alone.py has set what its import reads)
from torch import Tensor  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402

KERNELS = "sglang.kernels.ops.speculative"
CHAIN, TREE = f"{KERNELS}.reject_sampling", f"{KERNELS}.spec_tree"
BLOCKWISE, SPARSE = f"{KERNELS}.dspark.blockwise_rejection", "sglang.srt.speculative.uno_utils"
DEVICES = ("is_cpu", "is_cuda", "is_hip", "is_musa", "is_npu")
GIVEN = {"sglang.srt.utils": {"is_xpu": lambda: True, **dict.fromkeys(DEVICES, lambda: False)}}
SEEDS = 2**31
alone.with_log1p(libdevice)
alone.with_todays_numpy()
alone.without_the_rest("sglang", {CHAIN, TREE, BLOCKWISE, SPARSE}, GIVEN)
alone.left_out("flashinfer")


def coins(shape: tuple[int, ...], seed: int, coin: float | None) -> tuple[Tensor, Tensor]:
    """Those of acceptance and of the last token, from the seed or all the same."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(shape, generator=generator), torch.rand(shape[:1], generator=generator)
    return drawn if coin is None else (torch.full_like(drawn[0], coin), torch.full_like(drawn[1], coin))


def chain(block: bool, p: Tensor, q: Tensor, draft: Tensor, seed: int, coin: float | None = None, **_: Any) -> Any:
    """chain_speculative_sampling_triton."""
    lanes, slots = p.shape[:2]
    emitted, index = torch.zeros(lanes * slots).int(), torch.full((lanes, slots), -1).int()
    accepted, places = torch.empty(lanes).int(), torch.arange(lanes * slots).view(lanes, slots)
    candidates = torch.cat([torch.zeros(lanes, 1).long(), draft], dim=1)
    importlib.import_module(CHAIN).chain_speculative_sampling_triton(
        predicts=emitted,
        accept_index=index,
        accept_token_num=accepted,
        candidates=candidates,
        retrive_index=places,
        retrive_next_token=None,
        retrive_next_sibling=None,
        uniform_samples=coins((lanes, slots), seed, coin)[0],
        uniform_samples_for_final_sampling=coins((lanes, slots), seed, coin)[1],
        target_probs=p,
        draft_probs=q,
        threshold_single=1.0,
        threshold_acc=1.0,
        deterministic=True,
        block_verification=block,
    )
    return [emitted[index[b, : n + 1].long()].tolist() for b, n in enumerate(accepted.tolist())]


def blockwise(function: str, rows: bool, p: Tensor, q: Tensor, draft: Tensor, seed: int, **_: Any) -> Any:
    """blockwise_rejection_triton, and its reference in torch."""
    module, (lanes, slots, vocabulary) = importlib.import_module(BLOCKWISE), p.shape
    temperature = torch.where(torch.arange(lanes) % 2 == 1, 0.5, 1.0)  # powers of two divide exactly
    noise = module.make_rejection_noise(seed % SEEDS, "cpu")
    noise.counter.fill_(seed // SEEDS)
    kept, bonus, _trimmed = getattr(module, function)(
        candidates=torch.cat([torch.zeros(lanes, 1).long(), draft], dim=1),
        target_logits=(p.log() * temperature[:, None, None]).view(lanes * slots, vocabulary),
        draft_logits=q.log() * temperature[:, None, None] if rows else None,
        target_temperatures=temperature,
        draft_temperatures=temperature,
        noise=noise,
    )
    return [[*draft[b, :n].tolist(), int(bonus[b])] for b, n in enumerate(kept.tolist())]


def sparse(p: Tensor, q: Tensor, draft: Tensor, seed: int, coin: float | None = None, **_: Any) -> Any:
    """_sparse_rejection_from_support, with each row's ids from the most likely one on and never all of them unless
    they have mass."""
    (p, ids), (q, draft_ids) = (rows.sort(dim=-1, descending=True, stable=True) for rows in (p, q))
    width, narrow = (int((rows > 0).sum(-1).max()) for rows in (p, q))
    of_all, of_last = coins((len(p), p.shape[1]), seed, coin)
    kept, bonus = importlib.import_module(SPARSE)._sparse_rejection_from_support(
        torch.cat([torch.zeros(len(p), 1).long(), draft], dim=1),
        ids[..., :width],
        p[..., :width],
        draft_ids[..., :narrow],
        q[..., :narrow],
        of_all,
        of_last,
    )
    return [[*draft[b, :n].tolist(), int(bonus[b])] for b, n in enumerate(kept.tolist())]


def greedy_tree(tokens: list[list[int]], parents: list[list[int]], best: list[list[int]]) -> list[list[int]]:
    """verify_tree_greedy_triton over trees [B][N] whose root is node 0: what each of them emits."""
    lanes, nodes = len(tokens), len(tokens[0])
    following, sibling = (torch.full((lanes, nodes), -1) for _ in range(2))
    depth = [[0] * nodes for _ in range(lanes)]
    for b, lane in enumerate(parents):
        for node in reversed(range(1, nodes)):
            sibling[b, node], following[b, lane[node]] = following[b, lane[node]].clone(), node
        for node in range(1, nodes):
            depth[b][node] = depth[b][lane[node]] + 1
    emitted = torch.zeros(lanes * nodes).int()
    index = torch.full((lanes, max(max(lane) for lane in depth) + 1), -1).int()
    accepted = torch.empty(lanes).int()
    importlib.import_module(TREE).verify_tree_greedy_func(
        emitted,
        index,
        accepted,
        torch.tensor(tokens),
        torch.arange(lanes * nodes).view(lanes, nodes),
        following,
        sibling,
        torch.tensor(best),
    )
    return [emitted[index[b, : n + 1].long()].tolist() for b, n in enumerate(accepted.tolist())]


VERIFY = {
    "chain": (CHAIN, partial(chain, False)),
    "chain, block": (CHAIN, partial(chain, True)),
    "blockwise, draft rows": (BLOCKWISE, partial(blockwise, "blockwise_rejection_triton", True)),
    "blockwise, no rows": (BLOCKWISE, partial(blockwise, "blockwise_rejection_triton", False)),
    "blockwise in torch": (BLOCKWISE, partial(blockwise, "blockwise_rejection_torch", True)),
    "sparse in torch": (SPARSE, sparse),
    "greedy tree": (TREE, greedy_tree),
}


def verifier(way: str) -> Any:
    """The function behind a way. Raises ImportError where this version has none."""
    if way == "tree":
        raise ImportError("tree_speculative_sampling_target_only is compiled for CUDA alone and has no twin in Triton")
    module, function = VERIFY[way]
    importlib.import_module(module)
    return function
