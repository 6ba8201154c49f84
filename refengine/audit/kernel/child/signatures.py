"""The three plain signatures: the arguments of a subject, and the form of its answer. Runs in the child.

    verify(p, q, draft, generator) -> tokens
        p float32 [gamma + 1, V], q float32 [gamma, V], draft int64 [gamma]; 1 .. gamma + 1 tokens
    verify_batch(p, q, draft, generator) -> tokens
        the same with a leading axis B; [B, gamma + 1], padded with -1
    round(target, draft, prefix, gamma, generator) -> tokens
        target(tokens), draft(tokens) -> float32 [V] after that prefix; the proposer is the subject's own

The generator is a torch.Generator. Tokens may come as a tensor, an array or a list.
"""

import importlib
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import islice
from typing import Any

import numpy as np

from refengine.audit.kernel.request import PARAMETERS

NOTHING = -1
MAX_ENTRIES = 1 << 16  # of an answer; what is longer is not read, and no call emits a hundredth of it


class ContractBroken(Exception):
    """The answer is no list of emitted tokens; the message says why."""


class Prefix(list[int]):
    """A prefix that can be extended by a list, a tuple or a tensor alike, since the signature does not say which."""

    def __add__(self, other: Any) -> "Prefix":  # type: ignore[override]
        return Prefix([*self, *as_list(other)])


def is_tensor(value: Any) -> bool:
    """Whoever has one has imported torch; who reads a record has not, and need not."""
    return isinstance(value, getattr(sys.modules.get("torch"), "Tensor", ()))


def as_list(tokens: Any, depth: int = 2) -> list[Any]:
    """Tokens as a list of Python numbers; nested where the answer is, down to `depth`."""
    if is_tensor(tokens) and tokens.is_meta:
        raise ContractBroken("the answer is a tensor on the meta device, which holds no values")
    if is_tensor(tokens) and str(tokens.layout) != "torch.strided":
        raise ContractBroken(f"the answer is a tensor of the layout {str(tokens.layout).removeprefix('torch.')}")
    if is_tensor(tokens) or isinstance(tokens, (np.ndarray, np.generic)):
        _refuse_many(math.prod(tokens.shape))
        return list(tokens.tolist()) if tokens.ndim else [tokens.tolist()]
    if isinstance(tokens, Iterable) and not isinstance(tokens, (str, bytes, Mapping, Set)):
        entries = list(islice(tokens, MAX_ENTRIES + 1))
        _refuse_many(len(entries))
        return [t if type(t) is int else _entry(t, depth) for t in entries]  # nearly all are: the rest takes longer
    raise ContractBroken(f"the answer is a {type(tokens).__name__}, not a list of tokens")


def _entry(value: Any, depth: int) -> Any:
    array = is_tensor(value) or isinstance(value, (np.ndarray, np.generic))
    if isinstance(value, (list, tuple)) or (array and value.ndim):
        return as_list(value, depth - 1) if depth else value
    return as_list(value)[0] if array else value


def _refuse_many(entries: int) -> None:
    if entries > MAX_ENTRIES:
        raise ContractBroken(f"the answer has more than {MAX_ENTRIES} entries")


def emitted(answer: Any, gamma: int, vocabulary: int) -> list[int]:
    """The tokens of one lane, checked: 1 .. gamma + 1 integers inside the vocabulary, then only padding."""
    if answer is None:
        raise ContractBroken("the answer is None: nothing was returned")
    tokens = as_list(answer)
    if len(tokens) == 1 and isinstance(tokens[0], list):  # a batch axis of one is forgiven
        tokens = tokens[0]
    tokens = [whole_number(i, token) for i, token in enumerate(tokens)]
    length = next((i for i, token in enumerate(tokens) if token == NOTHING), len(tokens))
    if any(token != NOTHING for token in tokens[length:]):
        raise ContractBroken(f"a token follows padding: {tokens}")
    if not 1 <= length <= gamma + 1:
        raise ContractBroken(f"{length} tokens were emitted; a round over {gamma} drafts emits 1 to {gamma + 1}")
    for token in tokens[:length]:
        if not 0 <= token < vocabulary:
            raise ContractBroken(f"token {token} lies outside the vocabulary of {vocabulary}")
    return tokens[:length]


def whole_number(i: int, entry: Any) -> int:
    if isinstance(entry, bool) or not isinstance(entry, (int, float)):
        raise ContractBroken(f"entry {i} of the answer is {entry!r:.60}, not a token")
    if isinstance(entry, float) and not entry.is_integer():
        raise ContractBroken(f"entry {i} of the answer is {'NaN' if entry != entry else entry}, not an integer")
    if abs(entry) >= 1 << 63:
        raise ContractBroken(f"entry {i} of the answer has more than 64 bits, and is no token")
    return int(entry)


def check_prefix(tokens: list[int], draft: list[int]) -> None:
    """All but the last emitted token must be the draft's: after any other token no row was given to go on from."""
    for i, token in enumerate(tokens[:-1]):
        if token != draft[i]:
            raise ContractBroken(f"token {i} is {token} where {draft[i]} was drafted, and more tokens follow it")


def check_lanes(answer: Any, batch: int) -> list[Any]:
    lanes = as_list(answer)
    if len(lanes) != batch:
        raise ContractBroken(f"{len(lanes)} rows came back for a batch of {batch}")
    return lanes


def refusal(function: Callable[..., Any], signature: str) -> str:
    """Why a function cannot be called as its signature says; "" where it can, or where it does not tell."""
    a_class = "it is a class: name an instance of it" if inspect.isclass(function) else ""
    try:
        takes = inspect.signature(function)
    except (TypeError, ValueError):  # a function of C
        return a_class
    try:
        takes.bind(*PARAMETERS[signature])
    except TypeError as error:
        others = [name for name in PARAMETERS if _binds(takes, name)]
        if a_class:
            hint = a_class
        elif next(iter(takes.parameters), "") == "self":
            hint = "it is a method of a class: name that of an instance"
        elif others and not {*PARAMETERS[signature]} <= takes.parameters.keys():
            hint = f"--signature {others[0]} fits"
        else:
            hint = "wrap it in a function that takes these in this order"
        return f"it takes {takes}, and is called as f({', '.join(PARAMETERS[signature])}) ({error}); {hint}"
    return a_class


def _binds(takes: inspect.Signature, signature: str) -> bool:
    try:
        takes.bind(*PARAMETERS[signature])
    except TypeError:
        return False
    return True


def load(subject: str) -> Callable[..., Any]:
    """The function named "module:function" ("module:Class.method" works too). Raises what importing it raises."""
    module, _, name = subject.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{subject} is not a function but of the type {type(found).__name__}")
    return found  # type: ignore[no-any-return]
