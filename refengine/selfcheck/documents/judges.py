"""What each printed program is held to. Runs in the child; a judge returns a witness, empty where none was found.

The programs draw with `torch.rand` and `torch.multinomial`: both are answered from a script, which makes every law here
an exact one. A coin is asked at both ends and then by halves, until the least uniform of torch's grid (multiples of
2^-24) that refuses is known.
"""

import json
import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import Qwen3Config

from refengine.audit.sandbox.child import subject_code
from refengine.decoder import load_drafter, load_target
from refengine.decoder.drafters.ngram import NGram
from refengine.decoder.loop import begin, nodes
from refengine.decoder.protocols import Turn
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline
from refengine.exact.block import Block, Round, Target, drawn
from refengine.exact.chance import Chance
from refengine.exact.drafters import sampled_chain
from refengine.exact.law import losslessness
from refengine.exact.row import Row, row
from refengine.source_tree import FIXTURES

Found: TypeAlias = dict[str, Any]
GRID = 1 << 24  # of a float32 uniform of torch
GREEDY = pipeline(greedy())
COINS = Philox(0, torch.tensor([0]))


class Scripted:
    """Stands for the name `torch` in a program: `rand` answers the coins, `multinomial` writes its row down."""

    def __init__(self, coins: list[float]) -> None:
        self.coins, self.rows = list(coins), list[Tensor]()

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def rand(self, *size: Any, **_: Any) -> Tensor:
        return torch.tensor(self.coins.pop(0))

    def multinomial(self, weights: Tensor, count: int) -> Tensor:
        self.rows.append(weights)
        return torch.multinomial(weights, count)


# --- verify and to_probs ---------------------------------------------------------------------------------------------


def verified(program: ModuleType, p: Tensor, draft: Tensor, q: Tensor, coins: list[float]) -> tuple[int, Tensor]:
    """How many drafts the printed `verify` keeps with these coins, and the row that it draws the last token from."""
    script = Scripted(coins)
    program.__dict__["torch"] = script
    with subject_code():
        kept, _ = program.verify(p, draft, q)
    return kept, script.rows[-1]


def as_rule(program: ModuleType) -> Callable[[Any, Block, Chance], Round]:
    """The printed function as a rule of exact odds."""
    known: dict[Any, int] = {}  # the least coin that refuses, by what it depends on

    def rule(rows: Any, block: Block, chance: Chance) -> Round:
        drafted = [drawn(block, j) for j in range(len(block.tokens))]
        p, q = (torch.tensor([[float(x) for x in line] for line in table]) for table in (rows, drafted))
        draft, kept = torch.tensor(block.tokens), 0
        while kept < len(block.tokens):
            case = (tuple(rows), block, kept)
            if case not in known:
                known[case] = least_refusing(program, p, draft, q, kept)
            odds = Fraction(known[case], GRID)
            if chance.choose((odds, 1 - odds), ("accept", kept)):
                break
            kept += 1
        refused = [0.0] * kept + [1 - 1 / GRID] * len(draft)
        weights = [Fraction(float(w)) for w in verified(program, p, draft, q, refused)[1]]
        last = chance.choose(tuple(w / sum(weights) for w in weights), ("emit", kept))
        return Round((*block.tokens[:kept], last), tuple(range(kept)))

    return rule


def least_refusing(program: ModuleType, p: Tensor, draft: Tensor, q: Tensor, number: int) -> int:
    """The least coin of the grid, times 2^24, with which draft `number` is refused after all before it were kept."""
    low, high = 0, GRID
    while low < high:
        middle = (low + high) // 2
        coins = [0.0] * number + [middle / GRID] + [1 - 1 / GRID] * len(draft)
        accepted = verified(program, p, draft, q, coins)[0] > number
        low, high = (middle + 1, high) if accepted else (low, middle)
    return low


def law_of_verify(program: ModuleType) -> Found:
    """Context-dependent rows of eighths over three tokens, two drafts: exact up to the grid of the coins."""
    rule, tables = as_rule(program), [(eighths(n, "p"), sampled_chain(eighths(n, "q"), 2)) for n in range(4)]
    found = [losslessness(p, drafter, rule, (), 3) for p, drafter in tables]
    worst = float(max(found))
    wrong = worst > 2**-20  # two coins of 24 bits, and residuals in float32
    witness = {"rows": "eighths", "number": found.index(max(found))} if wrong else {}
    numbers = {"tables": len(found), "largest TV": worst}
    return {"witness": witness, "numbers": numbers, **({"tv": worst} if wrong else {})}


def eighths(number: int, name: str) -> Target:
    """A table of rows by prefix, each weight a positive multiple of 1/8."""

    def of(prefix: tuple[int, ...]) -> Row:
        first, second = sorted(random.Random(f"{number} {name} {prefix}").sample(range(1, 8), 2))
        return row([first, second - first, 8 - second])

    return of


def rare_drafts(program: ModuleType) -> Found:
    """p = q, and a draft of probability 5e-9: accepted whatever the coin."""
    p = torch.tensor([[5e-9, 1 - 5e-9]] * 2)
    for coin in (0.0, 0.25, 0.75, 1 - 1 / GRID):
        try:
            kept, _ = verified(program, p, torch.tensor([0]), p[:1], [coin])
            said = "refused"
        except Exception as error:  # of the subject: what is left over has no mass
            kept, said = 0, str(error.__cause__ or error).splitlines()[0]
        if not kept:
            return {"witness": {"p": ["5e-9", "1 - 5e-9"], "q": "p", "draft": 0, "u": coin, "what happens": said}}
    return {}


def small_temperatures(program: ModuleType) -> Found:
    """Two equal logits and one far below, at a temperature of 1e-6."""
    found = program.to_probs(torch.tensor([[1.0, 1.0, 0.0]]), 1e-6)[0]
    away = float((found - torch.tensor([0.5, 0.5, 0.0])).abs().sum() / 2)
    witness = {"logits": [1, 1, 0], "temperature": "1e-6", "row": found.tolist()} if away > 1e-6 else {}
    return {"witness": witness, **({"tv": away} if witness else {})}


# --- networks and the cache ------------------------------------------------------------------------------------------


def lookahead_cache(program: ModuleType) -> Found:
    """Random texts over four tokens: what the cache of all that was observed drafts, and our own n-gram drafter."""
    source, compared = random.Random(0), 0
    for _ in range(500):
        text = tuple(source.randrange(4) for _ in range(source.randint(2, 30)))
        cache, ours = program.LookaheadCache(), NGram(5, 3)
        with subject_code():
            cache.update(list(text))
            drafted = cache.predict(list(text))
        ours.start(text[:-1], None)  # type: ignore[arg-type]
        wanted = nodes(ours.propose(Turn((), text, GREEDY, COINS)))[0]
        compared += len(wanted)
        if tuple(drafted) != wanted:
            return {"witness": {"text": list(text), "drafted": list(drafted), "wanted": list(wanted)}}
    return {"numbers": {"texts": 500, "drafts compared": compared}}


def medusa_head(program: ModuleType) -> Found:
    """The first head of the fixture, on the hidden states of a text."""
    target, drafter = tiny("heads/medusa")
    states, tensors = hidden_states(target), drafter.w.tensors
    head = program.MedusaHead(states.shape[1], target.vocabulary)
    given = {"linear1.weight": "0.0.linear.weight", "linear1.bias": "0.0.linear.bias", "linear2.weight": "0.1.weight"}
    head.load_state_dict({ours: tensors[name] for ours, name in given.items()}, strict=False)
    with torch.no_grad():
        head.linear2.bias.zero_()  # which the released head does not have
        return apart(head(states), drafter.heads(states)[0])


def eagle_drafter(program: ModuleType) -> Found:
    """The fixture's linear layer, its columns exchanged for [hidden; embedding], after the tokens of a text."""
    target, drafter = tiny("eagle/eagle1")
    states, network = hidden_states(target), drafter.network
    count, width = len(states) - 1, states.shape[1]
    tokens = torch.tensor(TEXT[1:])
    wanted, _ = network.rows(tokens, states[:count], torch.arange(count), network.empty(), triangle(count))
    printed = program.EAGLEDrafter(width)
    weight = network.w["fc.weight"]
    exchanged = torch.cat([weight[:, width:], weight[:, :width]], 1)
    printed.load_state_dict({"fc.weight": exchanged, "fc.bias": network.w["fc.bias"]})
    with torch.no_grad():
        return apart(printed(states[:count], network.w.embed("embed_tokens", tokens)), wanted)


def dspark_network(program: ModuleType) -> Found:
    """The fixture's file through the document's renaming: greedy blocks after every prefix of a text."""
    target, drafter = tiny("tiny/dspark")
    draft, compared = printed_dspark(program), 0
    for length in range(1, len(TEXT)):
        passed = begin(target, TEXT[:length], drafter.taps)
        features = torch.cat([passed.taps[j] for j in drafter.taps], -1)[None]
        with torch.no_grad(), subject_code():
            hidden = draft.backbone(features, torch.tensor([TEXT[length]]), ctx_len=length)
            tokens, _ = draft.draft_block(hidden, torch.tensor([TEXT[length]]))
        drafter.start(TEXT[:length], passed)
        ours = nodes(drafter.propose(Turn(TEXT[:1], TEXT[: length + 1], GREEDY, COINS)))[0]
        compared += len(ours)
        if tuple(tokens[0].tolist()) != ours:
            return {"witness": {"text": list(TEXT[: length + 1]), "drafted": tokens[0].tolist(), "wanted": list(ours)}}
    return {"numbers": {"drafts compared": compared}}


TEXT = (4, 3, 4, 2, 0, 6, 4, 2, 4, 3, 5, 3, 0, 4, 1, 1, 6, 2, 0, 2)


@cache
def tiny(folder: str) -> tuple[Any, Any]:
    """The fixture's target and one of its drafters, in float32 as the printed programs run."""
    target = load_target(FIXTURES / "tiny" / "target", torch.float32)
    return target, load_drafter(FIXTURES / folder, target)


def hidden_states(target: Any) -> Tensor:
    """Of a text, after the target's final norm."""
    states: Tensor = begin(target, TEXT, (target.layers,)).taps[target.layers]
    return states


def triangle(count: int) -> Tensor:
    return torch.ones(count, count, dtype=torch.bool).tril()


def apart(found: Tensor, wanted: Tensor) -> Found:
    """Two results of one computation in float32 may differ by a few roundings, 1e-4; a missing term shows as more."""
    away = float((found - wanted).abs().max())
    numbers = {"largest difference": away}
    return {"numbers": numbers, "witness": {"text": list(TEXT), "more than": "1e-4"} if away > 1e-4 else {}}


def printed_dspark(program: ModuleType) -> Any:
    """The printed network with the fixture's tensors, renamed as the document does it."""
    folder = FIXTURES / "tiny" / "dspark"
    fields = json.loads((folder / "config.json").read_text())
    config = Qwen3Config(**{key: x for key, x in fields.items() if key not in ("architectures", "model_type")})
    draft = program.DSparkDraft(config).eval()
    renamed = {
        key.replace("markov_head.markov_w", "markov_w").replace("confidence_head.proj", "confidence_proj"): x
        for key, x in load_file(folder / "model.safetensors").items()
    }
    draft.load_state_dict(renamed)
    return draft


JUDGES: dict[str, Callable[[ModuleType], Found]] = {
    "verify/law": law_of_verify,
    "verify/rare-drafts": rare_drafts,
    "to_probs/small-temperatures": small_temperatures,
    "LookaheadCache/drafts": lookahead_cache,
    "MedusaHead/network": medusa_head,
    "EAGLEDrafter/network": eagle_drafter,
    "DSparkDraft/network": dspark_network,
}
