"""Does a model of transformers say the same of a row however the row is run? Asked once, of eight tokens, at loading.

The loop runs rows in pieces, takes some back, and runs trees. A model that places keys by their order in the cache
(MPT's and GPT-Neo's masks) or keeps its state where this package does not look (Mamba, RecurrentGemma) would then
answer for another text, and nothing would show it.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from refengine.decoder.checkpoints.reading.causal_lm import reason
from refengine.decoder.rows import chain_rows, tree_rows
from refengine.decoder.targets.base import Float64
from refengine.decoder.targets.bitwise import BitwiseTarget
from refengine.decoder.targets.recurrent import RecurrentTarget
from refengine.decoder.targets.transformers import ATTENTION, TransformersTarget
from refengine.errors import BadInput

LENGTH, TEXT = 8, 4
TOLERANCE = 1e-3  # of the largest logit: rounding in single precision is 1e-5 of it, another text about all of it


def behind_the_protocol(
    model: PreTrainedModel, slots: int | None = None
) -> TransformersTarget | RecurrentTarget | BitwiseTarget:
    """Rows are rolled back by indexing where every layer is an attention layer, otherwise by remembering."""
    types = getattr(model.config.get_text_config(), "layer_types", None) or ()
    try:
        target = TransformersTarget(model) if set(types) <= ATTENTION else RecurrentTarget(model, slots=slots)
    except ValueError as error:
        raise BadInput(str(error)) from None
    refuse_unfaithful(target)
    return BitwiseTarget(model, slots) if slots and isinstance(target, TransformersTarget) else target


def refuse_unfaithful(target: TransformersTarget | RecurrentTarget) -> None:
    """Raise BadInput for a model whose rows in pieces are not those of one pass. Half precision would hide it."""
    if target.dtype not in (torch.float32, torch.float64):
        return
    kind = target.model.config.model_type
    tokens = tuple((7 * i + 3) % target.vocabulary for i in range(LENGTH))
    try:
        whole, pieces = one_pass(target, tokens), in_pieces(target, tokens)
    except Exception as error:  # transformers raises whatever its parts raise
        raise BadInput(f"{kind}: its rows cannot be run in pieces: {reason(error)}") from error
    target.reset()
    off = float((whole - pieces).abs().max())
    if not off <= TOLERANCE * float(whole.abs().max()):
        raise BadInput(
            f"{kind}: rows that are run in pieces are off by {off:.2g}: its cache cannot be rolled back here"
        )


def one_pass(target: TransformersTarget | RecurrentTarget, tokens: tuple[int, ...]) -> Tensor:
    """Logits of every row as the model itself gives them, without a cache."""
    model: Any = target.model
    with torch.no_grad(), Float64() if target.dtype is torch.float64 else torch.no_grad():
        logits: Tensor = model(input_ids=torch.tensor([tokens], device=target.device), use_cache=False).logits[0]
    return logits


def in_pieces(target: TransformersTarget | RecurrentTarget, tokens: tuple[int, ...]) -> Tensor:
    """The same rows: a text, two rows that are taken back, one row, and the last ones beside others in a tree."""
    target.reset()
    text = target.run(chain_rows(tokens[:TEXT], 0, target.device)).logits
    target.keep(range(TEXT))
    target.run(chain_rows(tokens[:2], TEXT, target.device))
    target.keep(())
    rest, at = tokens[TEXT:], len(tokens) - TEXT
    if isinstance(target, RecurrentTarget):
        return torch.cat((text, target.run(chain_rows(rest, TEXT, target.device)).logits))
    # Node 2 j + 1 goes on, node 2 j is a sibling that goes nowhere.
    nodes = tuple(x for token in rest[1:] for x in (rest[0], token))
    parents = tuple(-1 if node < 2 else node // 2 * 2 - 1 for node in range(len(nodes)))
    logits = target.run(tree_rows(rest[0], nodes, parents, TEXT, target.device)).logits
    return torch.cat((text, logits[[0, *range(2, 2 * at - 1, 2)]]))
