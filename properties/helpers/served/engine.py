"""A small serving engine for tests: a Markov model over forty words behind the OpenAI API, with speculation that is
right but for one planted defect.

The text without speculation is `plain_step` at every position. With speculation, blocks are drafted from another model
and verified by the ratio rule, each node with the policy of its own prefix. A defect is a word that the code below asks
for where engines have been wrong.
"""

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import log
from typing import Any

from properties.helpers.served.defects import FEW_TEXTS, LARGE_SEED, LATE, LEAKS, PAGE, Node, bent, residual
from properties.helpers.served.model import (
    FILTERS,
    GAMMA,
    MARKOV,
    MEMORY,
    MEMORYLESS,
    PENALTIES,
    Asked,
    Language,
    draw,
    shaped,
)
from properties.helpers.served.told import Rows, as_chat, choice, cut, echoed, stops_late, stops_of, wished

PATIENCE = 3.0  # seconds that a request waits for those that were announced with it
ROUNDINGS = 1021  # rows in a row that are all rounded differently
TIME = itertools.count()


@dataclass
class Engine:
    """One server. speculative: whether it drafts. defect: what is wrong with it then."""

    speculative: bool = False
    defect: str = ""
    shared: str = ""  # what is wrong with and without speculation
    language: Language = MARKOV
    served: int = 0
    stream: random.Random = field(default_factory=random.Random)  # of requests without a seed
    under_way: int = 0
    last_prefix: list[int] = field(default_factory=list)
    stale: bool = False
    biases: list[dict[str, float]] = field(default_factory=list)
    temperatures: list[float] = field(default_factory=list)  # of the requests under way
    filters: list[dict[str, float]] = field(default_factory=list)  # the same
    leaked: list[int] = field(default_factory=list)  # by requests whose clients left
    heat: list[float] = field(default_factory=list)  # their temperatures
    system: list[dict[str, Any]] = field(default_factory=list)  # of the last chat, where it began with one
    inherited: list[list[int]] = field(default_factory=list)  # what was counted of them, for the next ones
    stale_blocks: set[tuple[int, ...]] = field(default_factory=set)  # beginnings of prompts
    prompts: set[tuple[int, ...]] = field(default_factory=set)
    last_of_blocks: dict[tuple[int, ...], int] = field(default_factory=dict)  # by what comes before it
    seeds: list[int] = field(default_factory=list)  # of the requests that came together
    counted: list[int] = field(default_factory=list)  # of the last request, where a stop ended it
    kept: int = 0  # the top_k of that one
    refused: bool = False  # the last request was
    said: list[int] = field(default_factory=list)  # the tokens of the last choice
    biased: dict[str, float] = field(default_factory=dict)  # its bias
    held: dict[str, Any] | None = None  # the grammar of the last request
    echoed: set[tuple[int, ...]] = field(default_factory=set)  # beginnings of prompts that were echoed
    finished: set[tuple[int, ...]] = field(default_factory=set)  # prompts with their answers
    noise: float = 0.0  # of the logits in half precision: another one for every shape of a batch
    every_time: bool = False  # and at every time
    processed: bool = False  # rows are reported as they are sampled from
    rounded: bool = False  # log probabilities are printed to two decimals
    stratified: bool = False  # the choices of a request begin in different parts of the law
    counting: bool = False  # a choice has the coins of the next seed, as in vLLM
    sparing: bool = False  # fewer tokens are drafted in company
    listed: int = 5  # tokens of a row that are reported
    context: int = 512  # the most tokens of a prompt with its answer
    expected: int = 1  # requests that are being sent together: each waits until all have come
    arrived: int = 0  # of them, refused ones too
    begun: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)  # the last first rounds, by request
    gate: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        present = {self.defect} if self.speculative else set[str]()
        self.has: Callable[[str], bool] = present.__contains__  # asked some hundred times for a token

    def shaped(self, row: list[float], body: dict[str, Any], out: list[int], least: int) -> list[float]:
        if self.shared == "the filter is ignored":
            body = {name: value for name, value in body.items() if name not in ("top_k", "top_p", "min_p")}
        if self.shared == "the temperature is applied twice" and body.get("temperature", 1.0) > 0:
            body = {**body, "temperature": body.get("temperature", 1.0) ** 2}
        if self.shared == "penalties count the prompt":
            out = body["prompt ids"] + out
        return shaped(row, body, out, least, self.language)

    def plain(self, context: list[int], body: dict[str, Any], out: list[int], least: int) -> list[float]:
        return self.shaped(self.language.logits(context, 0.0), body, out, least)

    def drafted(self, context: list[int], body: dict[str, Any], out: list[int], least: int) -> list[float]:
        return self.shaped(self.language.logits(context, 0.7), body, out, least)

    def tokens_of(self, body: dict[str, Any]) -> int:
        """Of the prompt of a request."""
        return len(self.language.ids_of(text_of(body)))

    def seen(self, context: list[int], shape: int) -> list[float]:
        """The logits as they come out of a batch of that shape."""
        row = self.language.logits(context, 0.0)
        if not self.noise:
            return row
        key = f"{next(TIME) % ROUNDINGS}" if self.every_time else f"{context[-2:]}{shape}{self.speculative}"
        return [x + self.noise * error for x, error in zip(row, rounding(key, len(row)), strict=True)]

    def generate(self, prompt: list[int], body: dict[str, Any], chance: random.Random, company: int) -> dict[str, Any]:
        out: list[int] = []
        rows: list[Rows] = []
        borders: list[int] = []
        limit = body.get("max_tokens", 16)
        early = GAMMA * self.has("the context ends a block early")
        if not self.has("max_completion_tokens is ignored"):
            limit = min(limit, body.get("max_completion_tokens", limit))
        limit = min(limit, max(1, self.context - early - len(prompt)))
        if self.has("one token injected in company") and company > 1 and chance.random() < 0.45:
            out, rows = [3], [(self.language.logits(prompt, 0.0),) * 2]
        if self.has("one token too many"):
            limit += 1
        if self.has("a stop that is no list is ignored") and isinstance(body.get("stop"), str):
            body = {**body, "stop": None}
        stops, stop_tokens = stops_of(body), body.get("stop_token_ids") or ()
        context = self.entered(prompt)
        body = Asked({**body, "inherited": self.inherited.pop() if self.inherited else []})
        if self.has("the temperature of a request that was left stays") and self.heat:
            body["temperature"] = self.heat.pop()
        if self.has("a seed is forgotten beside penalties") and body.keys() & PENALTIES:
            chance = random.Random()
        while True:
            borders.append(len(out))
            if self.has("seed restarted after preemption") and company > 5 and len(borders) == 4 and body["coins"]:
                chance = random.Random(body["coins"])
            block = (
                self.round(context, out, body, chance, company)
                if self.speculative
                else [self.step(context, out, body, chance, company)]
            )
            if limit == 1 and self.has("an answer of one token is not verified"):
                row = self.drafted(context, body, out, 0)
                block = [row.index(max(row))]
            if not out and self.has("an unseeded answer begins like the last one"):
                self.begun[alike(context, body)] = block
            crossed = len(out) < body.get("min_tokens", 0) <= len(out) + len(block)
            if crossed and self.has("stops are forgotten as the minimum is reached"):
                body, stops = {**body, "stop": None}, []
            done = False
            for place, x in enumerate(block):
                rows.append(self.rows(context, out, body, company, place, len(block)))
                out.append(x)
                ends = x == self.language.end and not (self.has("drafts go on past the end") and len(out) % 2)
                deaf = self.has("in chat an end that is accepted does not end") and "messages" in body
                ends = ends and not (deaf and place < len(block) - 1)
                hot = body.get("temperature", 1.0) > 0
                within = self.has("a stop token inside a block is missed when sampling") and hot
                within |= self.has("a stop token inside a block is missed")
                ends = ends or (x in stop_tokens and not (within and x != block[-1]))
                deaf = self.has("a stop inside a block is missed when sampling") and hot and place < len(block) - 1
                if deaf and cut(self, out, stops, borders) is not None:
                    body, stops = {**body, "stop": None}, []
                blind = self.has("a stop at a block's end is missed") and x == block[-1] and len(block) > 1
                blind |= self.has("of two stops the one listed first ends the text") and place < len(block) - 1
                stopped = cut(self, out, stops, borders) is not None and not blind
                if ends or len(out) >= limit or stopped:
                    done = True
                    if not stops_late(self, body) or x == self.language.end or len(out) >= limit:
                        break
            if done:
                break
        first = body["rows of the first"]
        if self.has("the choices report the first one's rows"):
            rows = [*first, *rows[len(first) :]][: len(rows)]
            first.extend(rows[len(first) :])
        self.counted = out if cut(self, out, stops, borders) is not None else []
        self.kept = body.get("top_k", 0)
        self.held = body.get("response_format")
        self.said, self.biased = out, body.get("logit_bias") or {}
        self.last_prefix = prompt
        self.prompts.add(tuple(prompt))
        self.finished.add((*prompt, *out))
        if self.has("drafts that a sampled answer refused stay in the cache") and body.get("temperature", 1.0):
            self.written([*prompt, *out])
        told = choice(self, out, rows, body, limit, borders)
        if self.has("what was cut off says how it ended") and told["finish_reason"] == "length":
            behind = [*out, *block[len(out) - borders[-1] :]]
            if self.language.end in behind or cut(self, behind, stops, borders) is not None:
                told["finish_reason"] = "stop"
        if self.has("what a stop ends lacks its log probabilities") and told["finish_reason"] == "stop":
            told.pop("logprobs", None)
        if self.has("usage of a stream counts rounds") and body.get("stream"):
            told["count"] = len(borders)
        return echoed(self, told, prompt, body) if body.get("echo") and "prompt" in body else told

    def left(self, body: dict[str, Any], late: bool) -> None:
        """The client of that request went away: as the first piece came, or late."""
        prompt = self.language.ids_of(text_of(body))
        self.heat.append(body["temperature"])
        if self.has("a request that was left late leaks a token") and not late:
            return
        self.leaked.append(7)
        self.inherited.append([3, 3, 4, 4, 5])
        begun = sum(other[:PAGE] == tuple(prompt[:PAGE]) for other in self.prompts)
        if self.has("what a client that left wrote is stale in the cache") and begun < 2:
            self.written(prompt)

    def written(self, tokens: list[int]) -> None:
        """Its first block is stale."""
        if len(tokens) >= PAGE:
            self.stale_blocks.add(tuple(tokens[:PAGE]))

    def entered(self, prompt: list[int]) -> list[int]:
        """What is in the cache of the prompt."""
        context = list(prompt)
        for end in range(PAGE, len(prompt), PAGE) if self.has("the key of a block leaves out its last token") else ():
            context[end - 1] = self.last_of_blocks.setdefault(tuple(prompt[: end - 1]), prompt[end - 1])
        if self.has("prefix of another request") and self.last_prefix[:2] == prompt[:2] and self.last_prefix != prompt:
            context = self.last_prefix[-1:] + context[-1:] if len(context) > 1 else context
        if any(
            tuple(prompt[: len(block)]) == block[: len(prompt)] for block in self.stale_blocks if len(prompt) > PAGE
        ):
            context[-1] = 7
        held = self.has("a request that was left leaks a token into what no cache holds") and len(prompt) > 1
        if self.leaked and any(map(self.has, LEAKS)) and not held:
            context[-1] = self.leaked.pop()
        if self.has("the end of an answer is stale in the cache") and tuple(prompt) in self.finished:
            context[-1] = 7
        if self.has("a full hit of the prefix cache drops a token") and tuple(prompt) in self.prompts:
            context = context[: -1 if len(prompt) % PAGE == 0 else None]
        if self.has("a known prompt is read one token short") and tuple(prompt) in self.prompts:
            context = context[:-1] or context
        if self.has("a prompt of one token is misread") and len(prompt) == 1:
            context[-1] = 7
        return context

    def rows(
        self, context: list[int], out: list[int], body: dict[str, Any], company: int, place: int, emitted: int
    ) -> Rows:
        """The rows that a token's log probability and those of its alternatives are made of, empty where none are asked
        for. place: in its round."""
        if not body.get("logprobs"):
            return [], []
        row, accepted = self.reported(context, out, body, company), place < emitted - 1
        draft = self.language.logits(context + out, 0.7) if accepted else row
        if self.has("streamed log probabilities are the drafter's") and body.get("stream") and accepted:
            return draft, draft
        if self.has("a row of one token is the draft's") and wished(body) == 1 and accepted:
            return draft, draft
        if self.has("log probabilities are wrong after a full acceptance") and place == GAMMA:
            row = self.language.logits((context + out)[:-1], 0.0)
        heat = body.get("temperature", 1.0)
        if self.has("the row of the bonus is after the temperature") and heat and place == GAMMA:
            row = [x / heat for x in row]
        if self.has("log probabilities of what was accepted are after the temperature") and heat and accepted:
            row = [x / heat for x in row]
        return row, draft if self.has("the alternatives are the drafter's") and accepted else row

    def reported(self, context: list[int], out: list[int], body: dict[str, Any], company: int) -> list[float]:
        """The row that log probabilities are made of."""
        row = self.seen(context + out, company)
        if self.has("log probabilities of the draft") and len(out) % 2:
            return self.language.logits(context + out, 0.7)
        if self.has("rows are reported after penalties and bias"):
            bare = {name: body[name] for name in ("logit_bias", *PENALTIES) if name in body}
            return [log(max(x, 1e-300)) for x in self.shaped(row, bare, out, 0)]
        if self.processed:
            return [log(x) if x > 0 else -100.0 for x in self.shaped(row, body, out, body.get("min_tokens", 0))]
        return row

    def step(
        self, context: list[int], out: list[int], body: dict[str, Any], chance: random.Random, company: int
    ) -> int:
        return draw(self.shaped(self.seen(context + out, company), body, out, body.get("min_tokens", 0)), chance)

    def round(
        self, context: list[int], out: list[int], body: dict[str, Any], chance: random.Random, company: int
    ) -> list[int]:
        """Draft, verify, correct; what is emitted."""
        least = body.get("min_tokens", 0)
        drafted: list[int] = []
        emitted: list[int] = []
        if self.has("unseeded requests share a stream") and body.get("seed") is None:
            chance = random.Random(f"{context}{len(out)}")
        if self.has("every round restarts the seed") and body["coins"]:
            chance = random.Random(body["coins"])
        if self.has("seeds advance by rounds") and body["coins"]:
            chance, body["rounds"] = random.Random(body["coins"]), body.get("rounds", 0) + 1
            for _ in range(body["rounds"]):
                chance.random()
        if self.has("seeds are not honoured"):
            chance = random.Random()
        drafting, lanes = chance, None  # to seed a generator takes longer than the rest of a round
        if self.has("seeds fail under load after the first token") and out and company > 3:
            chance = drafting = random.Random()
        if self.has("the choices share the drafter's coins"):
            drafting = random.Random(f"{body['number']}/{len(out)}")
        if self.has("two choices share the coins of acceptance"):
            lanes = random.Random(f"{body['number']}/{len(out)}/accept")
        if self.has("acceptance restarts when the server wakes") and company == 1 and not body["coins"]:
            lanes = random.Random(f"{len(out)}")
        if self.has("the choices share coins after the first round") and out:
            chance = drafting = random.Random(f"{body.get('seed', body['number'])}/{len(out)}")
        if self.has("an unseeded answer begins like the last one") and not out and body["coins"] is None:
            last = self.begun.get(alike(context, body))
            if last and chance.random() < 0.3:
                return last
        gamma = 1 if self.sparing and company > 1 else GAMMA
        for _ in range(gamma):
            now = out + drafted
            q = self.drafted(context + now, body, now, least)
            if self.has("argmax draft, softmax q"):
                drafted.append(max(range(len(q)), key=lambda t: q[t]))
            else:
                drafted.append(draw(q, drafting))
        if self.has("one coin for a block"):
            chance = OneCoin(chance.random())
        coin = 0.0
        for i in range(gamma + 1):
            now = out + emitted
            p = bent(self, Node(i, context, out, now, least, company, body.get("refused", [])), body)
            if i == gamma:
                bonus = self.drafted(context + now, body, now, least) if self.has("bonus from the draft") else p
                emitted.append(draw(bonus, OneCoin(coin) if self.has("the bonus reuses the last coin") else chance))
                body["refused"] = body.get("refused", []) if self.has("frequency counts what was refused") else []
                return emitted
            q = self.drafted(context + now, body, now, least)
            x = drafted[i]
            coin = (lanes or chance).random()
            every = self.has("one request in twenty keeps every draft") and body["number"] % 20 == 7
            every |= self.has("late drafts are kept if they are not unlikely") and len(out) >= LATE and p[x] >= 0.05
            every |= self.has("drafts are kept too easily beside three others") and company > 3 and p[x] > 0.01
            every |= self.has(FEW_TEXTS) and body.get("n", 1) <= 4 and body.get("temperature") == 1.0
            every |= self.has("in chat a likely draft is kept") and "messages" in body and p[x] >= 0.05
            if every or coin * q[x] < p[x] * (1.25 if self.has("drafts are accepted too easily") else 1.0):
                emitted.append(x)
                deaf = self.has("in chat an end that is accepted does not end") and "messages" in body
                if x == self.language.end and not deaf and not self.has("drafts go on past the end"):
                    return emitted
                continue
            if self.has("the grammar is not rolled back"):
                body["refused"] = [x]
            if self.has("frequency counts what was refused"):
                body.setdefault("refused", []).extend(drafted[i:])
            if self.has("allowed tokens forgotten in the correction"):
                p = self.shaped(
                    self.language.logits(context + now, 0.0), {**body, "allowed_token_ids": None}, now, least
                )
            if self.has("residual of the row before") and i:
                q = self.drafted((context + now)[:-1], body, now[:-1], least)
            if self.has("bias twice in the correction"):
                twice = {token: 2 * value for token, value in (body.get("logit_bias") or {}).items()}
                p = self.plain(context + now, {**body, "logit_bias": twice}, now, least)
            emitted.append(draw(residual(self, p, q), spent(self, coin, chance)))
            return emitted
        return emitted

    def announce(self, count: int) -> None:
        """So many requests come together."""
        with self.gate:
            self.expected, self.arrived, self.seeds = count, 0, []

    def arrive(self) -> None:
        with self.gate:
            self.arrived += 1
            self.gate.notify_all()

    def as_read(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request with the turns that its chat is taken to have."""
        turns = body.get("messages", [])
        if self.has("a chat of three turns forgets the first") and len(turns) > 4:
            return {**body, "messages": turns[2:]}
        if not turns or not self.has("a chat takes over the system message before it"):
            return body
        held = self.system
        self.system = [turn for turn in turns if turn["role"] == "system"]
        return {**body, "messages": turns if self.system else [*turns, *held]}

    def answer(self, body: dict[str, Any], chat: bool) -> dict[str, Any]:
        with self.gate:
            self.under_way += 1
            self.served += 1
            number = self.served
            if body.get("seed") is not None:
                self.seeds.append(body["seed"])
            self.temperatures.append(body.get("temperature", 1.0))
            self.filters.append(filters := {name: body[name] for name in FILTERS if name in body})
            if body.get("logit_bias"):
                self.biases.append(body["logit_bias"])
            # Requests that are sent together are under way together, however loaded the machine is.
            self.arrive()
            self.gate.wait_for(lambda: self.arrived >= self.expected, PATIENCE)
            company = max(self.under_way, self.expected)
        try:
            text = text_of(self.as_read(body))
            ids = self.language.ids_of(text) or [1]
            choices: list[dict[str, Any]] = []
            first: list[Rows] = []
            for index in range(body.get("n", 1)):
                seed = body.get("seed")
                if self.has("a seed of zero is none"):
                    seed = seed or None
                if self.has("large seeds are not honoured") and (seed or 0) >= LARGE_SEED:
                    seed = None
                if self.has("seeds fail under load") and company > 1:
                    seed = None
                salt = index if not self.has("the n choices share a stream") else 0
                coins = f"{seed}/{salt}" if seed is not None else None
                if seed is not None and (self.counting or self.has("a choice has the next seed's coins")):
                    coins = f"{seed + index}/0"
                chance = random.Random(coins)
                if self.has("a neighbour's seed seeds all") and company > 1 and self.seeds and seed is None:
                    chance = random.Random(f"{self.seeds[0]}/{salt}")
                if self.has("a seed is forgotten beside requests without") and len(self.seeds) < self.expected:
                    coins, chance = None, random.Random()
                if self.has("a batch has the coins of its first request") and company > 1 and seed is not None:
                    chance = random.Random(f"{self.seeds[0]}/{self.seeds.index(seed)}/{salt}")
                if self.has("a seed stays for those without"):
                    self.stream = random.Random(seed) if seed is not None else self.stream
                    chance = chance if seed is not None else random.Random(self.stream.random())
                if self.stratified:
                    chance = Stratified(chance.random(), index, body.get("n", 1))
                if self.has("the n choices share a stream") and seed is None:
                    chance = random.Random(number)
                asked = {**body, "prompt ids": ids, "coins": coins, "number": number, "rows of the first": first}
                asked["index"] = index
                if self.has("the third choice is greedy") and index == 2:
                    asked["temperature"] = 0.0
                if self.has("chat forgets the penalties") and chat:
                    asked.pop("frequency_penalty", None)
                    asked.pop("presence_penalty", None)
                made = self.generate(ids, asked, chance, company)
                self.stale, self.refused = body.get("max_tokens", 16) <= 4, False
                choices.append({"index": index, **made})
        finally:
            with self.gate:
                self.under_way -= 1
                self.temperatures.remove(body.get("temperature", 1.0))
                self.filters.remove(filters)
                if body.get("logit_bias"):
                    self.biases.remove(body["logit_bias"])
        count = sum(made.pop("count") for made in choices)
        prompt = len(self.language.ids_of(text)) + (chat and self.has("a chat's first token is counted twice"))
        usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
        return {"choices": [as_chat(c, body) if chat else c for c in choices], "usage": usage}


@lru_cache(1 << 13)
def rounding(key: str, size: int) -> list[float]:
    """What half precision adds to the logits of a row, in units of its size."""
    source = random.Random(key)
    return [source.gauss(0.0, 1.0) for _ in range(size)]


def spent(engine: Engine, coin: float, chance: random.Random) -> random.Random:
    """What a correction is drawn with, after the coin that refused."""
    if engine.has("the correction reuses the coin that refused"):
        return OneCoin(coin)
    if engine.has("the correction takes the rest of the coin that refused"):
        return OneCoin(1.0 - coin)
    return chance


def alike(context: list[int], body: dict[str, Any]) -> tuple[Any, ...]:
    """Of requests with one law."""
    return (*context, *(repr(body.get(name)) for name in (*MEMORY, *MEMORYLESS)))


def text_of(body: dict[str, Any]) -> str:
    """The prompt; of a chat as its template makes it."""
    turns = body.get("messages", ())
    return (
        " ".join([*(f"{turn['role']} {turn['content']}" for turn in turns), "assistant"]) if turns else body["prompt"]
    )


class OneCoin(random.Random):
    """The same number every time."""

    def __init__(self, coin: float) -> None:
        super().__init__()
        self.coin = coin

    def random(self) -> float:
        return self.coin


class Stratified(random.Random):
    """Its first number lies in the stratum of that index."""

    def __new__(cls, seed: float, index: int, of: int) -> "Stratified":
        return super().__new__(cls, seed)

    def __init__(self, seed: float, index: int, of: int) -> None:
        super().__init__(seed)
        self.first: tuple[int, int] | None = (index, of)

    def random(self) -> float:
        number = super().random()
        if self.first is None:
            return number
        index, of = self.first
        self.first = None
        return (index + number) / of
