"""`refengine checkpoint verify`: a released drafter, read strictly and held to what can be held without its fixtures.

The networks may be large and the vocabulary whole, so no law is enumerated. What is checked: greedy decoding equals
plain decoding, in the ordinary mode up to ties and in the bitwise mode bit for bit; the live state after every round
equals a recompute from scratch; and acceptance is as p and q promise.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from refengine.commands.acceptance import accepted, by_kind
from refengine.commands.dspark_heads import heads
from refengine.commands.pair import Pair
from refengine.commands.prompts import Asked, prompts
from refengine.decoder.checkpoints.load import load_drafter, load_target
from refengine.decoder.checkpoints.streamed import stream_target
from refengine.decoder.loop import Session, fitting, generate, plain
from refengine.decoder.protocols import Drafter, State, Target
from refengine.engine.coins import Philox
from refengine.engine.policy import greedy, pipeline, temperature
from refengine.report.finding import Finding, Recipe
from refengine.report.terminal import Progress
from refengine.selfcheck.drafters.bits import Heard, Listened
from refengine.selfcheck.drafters.laws.exact_law import off_scratch
from refengine.selfcheck.drafters.ties import parting

LENGTHS, NEW_TOKENS = (1, 4, 9, 16), 48
SLOTS, DRAFTS = 128, 64  # slots of the bitwise mode where texts are short; tokens of a draft after the longest text


@dataclass(frozen=True)
class Subject:
    """A target, a drafter for it, and what they are asked; `tell` is told what is going on."""

    target: Target
    drafter: Drafter
    asked: list[Asked]
    tell: Callable[..., None]
    notes: list[str]
    common: dict[str, Any]

    def each(self, what: str) -> Iterator[Asked]:
        for number, one in enumerate(self.asked):
            self.tell(f"{what}: prompt {number + 1} of {len(self.asked)}", number / len(self.asked))
            yield one


def verify(
    drafter: str,
    target: str,
    dtype: str = "float32",
    device: str = "cpu",
    gamma: int | None = None,
    ngram: str | None = None,
    memory: int | None = None,
) -> list[Finding]:
    """Findings about a drafter, drafting for a target: folders, or repositories of the hub. Raises BadInput.

    memory  MiB for weights, instead of what is free: a target that does not fit beside its drafter is streamed
    """
    with Progress("checkpoint verify") as shown:
        pair = Pair.of(drafter, target, getattr(torch, dtype), device, memory, shown.finish)
        options = {"gamma": gamma, "ngram": ngram, "memory": memory}
        common = {
            "subject": f"{pair.drafter.title} drafting for {pair.target.title}, {dtype} on {device}",
            "source": "Leviathan et al. 2023, Theorem 3.5 and section 3.1",
            "recipe": Recipe(
                function=f"{__name__}:verify",
                arguments={"drafter": pair.drafter.name, "target": pair.target.name, "dtype": dtype, "device": device}
                | {name: value for name, value in options.items() if value is not None},
            ),
            "role": "subject",
        }

        def subject(*slots: int) -> Subject:
            """One of the two modes, the bitwise one with its slots: they are not in memory together."""
            folder, kind = str(pair.target.folder), getattr(torch, dtype)
            if pair.plan.fits:
                judge: Target = load_target(folder, kind, device, *slots)
            else:
                judge = stream_target(folder, kind, pair.plan.budget, shown.at, *slots)
            drafting = load_drafter(str(pair.drafter.folder), judge, gamma=gamma, ngram=Path(ngram) if ngram else None)
            asked = prompts(pair.target.folder, judge.vocabulary, LENGTHS)
            return Subject(judge, drafting, asked, shown.at, pair.notes, common)

        ordinary = subject()
        longest = max(len(one.tokens) for one in ordinary.asked)
        found = [check(ordinary) for check in (greedy_equality, state_equality, acceptance)]
        found += heads(ordinary.drafter, partial(_played, ordinary), common)
        del ordinary
        return [*found, bitwise_equality(subject(max(SLOTS, longest + NEW_TOKENS + DRAFTS)))]


def greedy_equality(s: Subject) -> Finding:
    """The first token that differs is a tie where the top-2 margin is within measured noise, else a defect."""
    policy, coins, heard = pipeline(greedy()), _coins(s.target), Heard()
    judge, equal, ties = Listened(s.target, heard), 0, 0
    witness: dict[str, Any] = {}
    for one in s.each("greedy"):
        wanted = plain(judge, policy, one.tokens, NEW_TOKENS, coins)
        ours = generate(judge, s.drafter, fitting, policy, one.tokens, NEW_TOKENS, coins).tokens
        if ours == wanted:
            equal += 1
            continue
        at = next(i for i, (a, b) in enumerate(zip(ours, wanted, strict=True)) if a != b)
        found = parting(s.target.model, one.tokens + wanted[:at], wanted[at], ours[at])  # type: ignore[attr-defined]
        if found.tie:
            ties += 1
        else:
            witness = {"prompt": one.tokens, "plain": wanted, "speculative": ours}
            witness |= {"margin": found.margin, "noise": found.noise}
    return Finding(
        id="checkpoint/greedy",
        claim="Greedy output equals plain greedy decoding token for token; what differs is a tie.",
        verdict="violated" if witness else "consistent",
        method=f"{_kinds(s)}, {NEW_TOKENS} tokens each; margin set against the noise that rounding makes there",
        numbers={
            "prompts": len(s.asked),
            "outputs with equal tokens": equal,
            "ties": ties,
            "rows compared": heard.compared,
            "rows with equal bits": heard.compared - len(heard.differing),
        },
        witness=witness or None,
        **s.common,
    )


def bitwise_equality(s: Subject) -> Finding:
    """In the bitwise mode nothing is excused: neither a token nor a bit of the logits."""
    policy, coins, heard = pipeline(greedy()), _coins(s.target), Heard()
    witness: dict[str, Any] = {}
    judge = Listened(s.target, heard)
    for one in s.each("bit for bit"):
        wanted = plain(judge, policy, one.tokens, NEW_TOKENS, coins)
        ours = generate(judge, s.drafter, fitting, policy, one.tokens, NEW_TOKENS, coins).tokens
        if ours != wanted or heard.differing:
            witness = {"prompt": one.tokens, "plain": wanted, "speculative": ours}
            witness |= {"bits differ after": heard.differing[:3]}
            break
    return Finding(
        id="checkpoint/bitwise",
        claim="In the bitwise mode greedy output and the logits of every row are those of plain decoding, bit for bit.",
        verdict="violated" if witness else "consistent",
        method=f"{_kinds(s)}, {NEW_TOKENS} tokens each; every text that was run twice has one row of logits",
        numbers={"prompts": len(s.asked), "rows compared": heard.compared, "lanes": getattr(s.target, "lanes", 1)},
        witness=witness or None,
        **s.common,
    )


def state_equality(s: Subject) -> Finding:
    """Live state after every sampled round against a recompute, within 10^4 roundings of the largest entry."""
    compared, witness = 0, None
    for one, session in _sampled(s, "state"):
        while not session.done and not witness:
            session.play(_coins(s.target))
            if session.done:
                break
            scale = _largest(session.state()) * torch.finfo(s.target.dtype).eps
            compared += 1
            if differs := off_scratch(session, 1e4 * scale):
                witness = {"prompt": one.tokens, "out": session.out, "differs": differs}
    return Finding(
        id="checkpoint/state",
        claim="After any accepts and rejects the caches hold what a recompute from scratch holds.",
        verdict="violated" if witness else "consistent",
        method="every entry of the live state, after every round of sampled decoding at temperature 1",
        numbers={"states compared": compared},
        witness=witness or None,
        **s.common,
    )


def acceptance(s: Subject) -> Finding:
    """Of sampled rounds: drafts accepted beside the overlap of p and q, and tokens per pass."""
    return accepted(by_kind(_played(s, "acceptance")), s.notes, s.common)


def _sampled(s: Subject, what: str) -> Iterator[tuple[Asked, Session]]:
    for one in s.each(what):
        session = Session(s.target, s.drafter, fitting, pipeline(temperature(1.0)), NEW_TOKENS)
        session.begin(one.tokens, _coins(s.target))
        yield one, session


def _played(s: Subject, what: str) -> Iterator[tuple[Asked, Session]]:
    """Every prompt's sampled decoding, to its end."""
    for one, session in _sampled(s, what):
        while not session.done:
            session.play(_coins(s.target))
        yield one, session


def _kinds(s: Subject) -> str:
    """How many prompts, and of which kinds."""
    return f"{len(s.asked)} prompts ({', '.join(dict.fromkeys(one.kind for one in s.asked))})"


def _coins(target: Target) -> Philox:
    return Philox(0, torch.tensor([0], device=target.device))


def _largest(state: State) -> float:
    return max(float(x.abs().max()) for x in state.values() if isinstance(x, Tensor) and x.numel())
