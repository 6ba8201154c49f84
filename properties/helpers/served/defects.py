"""The planted defects of the test servers: their names, and how those of verification bend the target's row.

A defect is present with speculation alone. The others are asked for by name where they belong in `engine.py`.
"""

from dataclasses import dataclass, field
from typing import Any

from properties.helpers.served.model import FILTERS, GAMMA, PENALTIES

DEFECTS = (
    "penalties once a block",
    "min_p on the last row only",
    "top_k on the last row only",
    "bias ignored",
    "min_tokens counts rounds",
    "bans on the first position only",
    "rows swapped in company",
    "position off by one after forty",
    "temperature on one side only",
    "corrected from p",
    "argmax draft, softmax q",
    "one token too many",
    "stop checked once a round",
    "finish_reason after a stop",
    "tokens past the stop",
    "log probabilities of the row before",
    "log probability zero",
    "usage counts the drafts",
    "unseeded requests share a stream",
    "seeds are not honoured",
    "the n choices share a stream",
    "prefix of another request",
)
UNSEEN = (  # written after the suite, by somebody who knew it
    "one token injected in company", "log probabilities wrong in the last block", "seeds fail under load",
    "argmax in verification", "the first token is the likeliest", "drafts go on past the end",
    "usage counts past the end", "presence counted twice", "allowed tokens forgotten in the correction",
    "worn out after 300 requests", "stale after a short request", "neighbour's bias", "a streamed answer lacks its end",
    "chat forgets the penalties", "nucleus of the draft", "the third choice is greedy",
    "cache cut at forty tokens of prompt",
)  # fmt: skip
FRESH = (  # written after the laws were sharpened, without a look at what they see
    "residual of the row before", "bonus from the draft", "one coin for a block", "bias twice in the correction",
    "top_p before the temperature", "frequency counts what was refused", "a stop at a block's end is missed",
    "log probabilities of the draft",
)  # fmt: skip
ADVERSE = (  # of an adversary's own server: what the audit missed on it
    "min_p before the temperature", "echoed log probabilities are shifted", "the choices share the drafter's coins",
    "usage of a stream counts rounds", "seed restarted after preemption", "a sampled token is missing from its row",
    "a request that was left leaks a token", "bias forgotten when sampling", "a stop token inside a block is missed",
    "the end of an answer is stale in the cache", "temperature of the first in the batch",
)  # fmt: skip
CORNERS = (  # at the corners of what may be asked, where no request of the suite went
    "a stop in the first token is missed", "of two stops the one listed first ends the text",
    "a stop longer than a block is missed", "a stop across a round's border is cut late",
    "streamed log probabilities are the drafter's", "echo drops the first token's row",
    "the alternatives are the drafter's", "log probabilities are wrong after a full acceptance",
    "a prompt of one token is misread", "penalties after the temperature", "low temperatures are greedy",
    "streamed choices change places", "the context ends a block early", "every round restarts the seed",
    "min_tokens is forgotten at the bonus", "drift after two hundred tokens", "the grammar is not rolled back",
    "the grammar is forgotten at the bonus", "a known prompt is read one token short",
    "penalties are forgotten where no rows are asked for",
)  # fmt: skip
BLIND = (  # written before a look at how claims are coded
    "a full hit of the prefix cache drops a token", "a neighbour's seed seeds all", "counts survive a stop",
    "preemption forgets what was counted", "the choices report the first one's rows",
    "rows are reported after penalties and bias", "the choices share coins after the first round",
    "penalties reach back forty tokens", "a stream loses what a stop held back", "a seed of zero is none",
    "a stop at the limit is not looked for", "the repetition penalty counts the prompt",
    "a greedy request beside a sampled one is sampled", "a chat's first token is counted twice",
    "temperatures above one are one", "bias forgotten at the bonus", "an unseeded answer begins like the last one",
    "a long prompt begins a token off", "a streamed call loses what came with its end",
    "it falls over top_k", "it hangs up on bans",
    "filters are those of the first in the batch", "top_p is dropped beside top_k",
    "log probabilities of what was accepted are after the temperature", "ignore_eos is forgotten at the bonus",
)  # fmt: skip
JUDGED = (  # of a judge's own servers, whose model, tokenizer and scheduler are others: what the audit missed on them
    "a banned phrase passes within a block", "a stop at the limit is called the length",
    "stops are forgotten as the minimum is reached", "a grammar stays for the bonus of the next request",
    "temperatures up to 0.3 are greedy", "top_p is of what top_k leaves", "seeds advance by rounds",
    "echoed log probabilities of a cached prefix are its first row", "chat filters on the last row only",
    "one request in twenty keeps every draft",
)  # fmt: skip
PARAMETERS = (  # which no other request of the suite can do without, or which is not to blame
    "it falls over n", "it hangs up on log probabilities", "the border of a page in an answer is stale",
)  # fmt: skip
SPARED = (  # written against what the suite did not ask: other ways into the cache, other code for the same request
    "what a client that left wrote is stale in the cache", "drafts that a sampled answer refused stay in the cache",
    "a neighbour's filter holds a sampled request", "bans are forgotten when sampling",
    "every other row lists its token alone", "argmax in verification where no rows are asked for",
    "drafts are accepted too easily", "counts survive a client that left", "min_p is forgotten at the bonus",
    "min_tokens is judged once a round", "the round of a stop that is included is kept",
    "what was cut off says how it ended", "a seed is forgotten beside penalties",
    "late drafts are kept if they are not unlikely", "a request that was left late leaks a token",
    "a seed stays for those without", "a request that was left leaks a token into what no cache holds",
)  # fmt: skip
COMPANY = (  # of servers on which they were found and not named, or not found: of what is under way beside a request
    "a batch has the coins of its first request", "the row of the bonus is after the temperature",
    "drafts are kept too easily beside three others",
)  # fmt: skip
ALONE = (  # of a judge's server, and not found on it: what is wrong where a request is alone, or where its kin are not
    "acceptance restarts when the server wakes", "a seed is forgotten beside requests without",
    "a chat takes over the system message before it", "in chat a likely draft is kept",
    "seeds fail under load after the first token", "in chat an end that is accepted does not end",
    "a filter outlives a stop", "an answer of one token is not verified", "a chat of three turns forgets the first",
    "pieces of a streamed chat lose the blank before them",
)  # fmt: skip
UNTOLD = (  # what an answer says of itself is missing
    "a stream that a stop ends lacks its usage", "what a stop ends lacks its log probabilities",
)  # fmt: skip
PAGED = (  # of a server with pages, trees of drafts and experts: what was not found on it
    "the temperature of a request that was left stays", "a choice counts what the one before it said",
    "a bias stays for the first round of the next request", "streamed choices behind the first say length",
    "a refused request takes the penalties of the next one",
)  # fmt: skip
BESIDE = (  # of a parameter beside another one, or beside a temperature: what was not asked together
    "a stop inside a block is missed when sampling", "the repetition penalty is forgotten for drafts when sampling",
    "a stop before the limit is called the length", "parameters are forgotten behind a known prompt",
    "a top_p of nine tenths is one", "a small min_p is none",
)  # fmt: skip
IDS = (  # where ids are sent or told
    "a stop token inside a block is missed when sampling",
    "a prompt of ids is read one token short", "the key of a block leaves out its last token",
    "the last id of an answer is the draft's",
)  # fmt: skip
VALUES = (  # of a value that users send, where the suite had asked for another one of the same parameter
    "a small repetition penalty is ignored", "a negative penalty is none", "a stop that is no list is ignored",
    "no temperature is greedy", "one token alone is the likeliest", "a row of one token is the draft's",
    "large seeds are not honoured", "a choice has the next seed's coins", "max_completion_tokens is ignored",
    "bans hold for the first choice alone",
)  # fmt: skip
LEAKS = (
    "a request that was left leaks a token", "a request that was left late leaks a token",
    "a request that was left leaks a token into what no cache holds",
)  # fmt: skip
LATE = 24  # tokens of an answer
PAGE = 16  # tokens in a block of the cache
SMALL_PENALTY, LARGE_SEED = 1.2, 1 << 31
BANS = ("bad_words", "allowed_token_ids", "response_format")
CORRECTION = (  # how what replaces a refused draft is drawn: each moves a little, in the same way at every setting
    "the correction reuses the coin that refused", "the correction takes the rest of the coin that refused",
    "the correction is drawn from the draft", "the residual is absolute",
)  # fmt: skip
FEW_TEXTS = "every draft is kept where few texts are under way"  # with more it does not speculate
MISSED = (  # of their kin, what 3,000 requests have not been seen to tell: no test asks for them
    "the tail of the residual is dropped", "the residual is clipped", "the bonus reuses the last coin",
    "two choices share the coins of acceptance",
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A position of a block that is verified. now: what was emitted before it; out: the same when the block began."""

    index: int
    context: list[int]
    out: list[int]
    now: list[int]
    least: int  # tokens before the end is allowed
    company: int  # requests under way
    refused: list[int] = field(default_factory=list)  # tokens that the request's drafts had in vain


def bent(engine: Any, node: Node, body: dict[str, Any]) -> list[float]:
    """The probabilities that verification holds the draft to."""
    i, now, policy = node.index, node.now, dict(body)
    seen, floor, past = now, node.least, node.context + now
    if engine.has("penalties once a block"):
        seen = node.out
    if engine.has("min_p on the last row only") and i < GAMMA:
        policy.pop("min_p", None)
    if engine.has("top_k on the last row only") and i < GAMMA:
        policy.pop("top_k", None)
    if engine.has("the border of a page in an answer is stale") and now and not i and len(past) % PAGE == 0:
        past = past[:-1]
    if engine.has("counts survive a client that left"):
        seen = body.get("inherited", []) + now
    if engine.has("min_tokens is judged once a round") and len(node.out) < node.least:
        floor = len(now) + 1
    if engine.has("min_p is forgotten at the bonus") and i == GAMMA:
        policy.pop("min_p", None)
    if engine.has("a choice counts what the one before it said") and body["index"]:
        seen = engine.said + now
    if engine.has("a bias stays for the first round of the next request") and not node.out:
        policy["logit_bias"] = {**engine.biased, **policy.get("logit_bias", {})}
    if engine.has("counts survive a stop"):
        seen = engine.counted + now
    if engine.has("a refused request takes the penalties of the next one") and engine.refused:
        policy = {name: value for name, value in policy.items() if name not in PENALTIES}
    if engine.has("a filter outlives a stop") and engine.counted:
        policy.setdefault("top_k", engine.kept)
    if engine.has("preemption forgets what was counted") and node.company > 5:
        seen = now[8:]
    if engine.has("bias ignored"):
        policy.pop("logit_bias", None)
    if engine.has("min_tokens counts rounds"):
        floor = node.least * 3
    if engine.has("bans on the first position only") and i:
        policy.pop("bad_words", None)
        policy.pop("allowed_token_ids", None)
    if engine.has("rows swapped in company") and node.company > 1 and i == 1:
        past = past[:-2] + past[-1:] + past[-1:]
    if engine.has("position off by one after forty") and len(now) > 40:
        past = past[:-1]
    if engine.has("presence counted twice") and seen:
        policy["presence_penalty"] = 2 * policy.get("presence_penalty", 0.0)
    if engine.has("nucleus of the draft"):
        policy["top_p"] = 1.0
    if engine.has("neighbour's bias") and node.company > 1 and engine.biases:
        policy["logit_bias"] = engine.biases[-1]
    if engine.has("stale after a short request") and engine.stale and len(now) < 4:
        past = [*past[:-1], 7]
    if engine.has("worn out after 300 requests") and engine.served > 300 and engine.served % 3 == 0 and i == 2:
        past = past[:-1]
    if engine.has("cache cut at forty tokens of prompt") and len(node.context) > 40 and i:
        past = past[:-2] + past[-1:]
    if engine.has("drift after two hundred tokens") and len(now) > 200:
        past = past[:-1]
    if engine.has("the grammar is not rolled back") and not i and node.refused and now:
        policy["grammar state"] = [*now[:-1], node.refused[-1]]
    if engine.has("the grammar is forgotten at the bonus") and i == GAMMA:
        policy.pop("response_format", None)
    if engine.has("min_tokens is forgotten at the bonus") and i == GAMMA:
        floor = 0
    if engine.has("ignore_eos is forgotten at the bonus") and i == GAMMA:
        policy.pop("ignore_eos", None)
    if engine.has("a long prompt begins a token off") and len(node.context) > 128 and not now:
        past = past[:-1]
    if engine.has("bias forgotten at the bonus") and i == GAMMA:
        policy.pop("logit_bias", None)
    if engine.has("penalties reach back forty tokens"):
        seen, policy["grammar state"] = now[-40:], now
    if engine.has("the repetition penalty counts the prompt") and policy.get("repetition_penalty"):
        seen = node.context + now
    if engine.has("a banned phrase passes within a block") and i:
        policy["bad_words"] = [words for words in policy.get("bad_words", ()) if " " not in words.strip()]
    if engine.has("a grammar stays for the bonus of the next request") and i == GAMMA and not node.out:
        policy.setdefault("response_format", engine.held)
    if engine.has("chat filters on the last row only") and "messages" in policy and i < GAMMA:
        policy = {name: value for name, value in policy.items() if name not in FILTERS}
    if engine.has("a small repetition penalty is ignored") and policy.get("repetition_penalty", 1.0) < SMALL_PENALTY:
        policy.pop("repetition_penalty", None)
    if engine.has("a negative penalty is none"):
        policy |= {name: max(0.0, policy[name]) for name in PENALTIES if name in policy}
    if engine.has("bans hold for the first choice alone") and body["index"]:
        policy = {name: value for name, value in policy.items() if name not in BANS[:2]}
    likeliest = engine.has("no temperature is greedy") and "temperature" not in body
    if likeliest or (engine.has("one token alone is the likeliest") and body.get("max_tokens") == 1):
        policy["temperature"] = 0.0
    heat = body.get("temperature", 1.0)
    if engine.has("temperatures up to 0.3 are greedy") and heat <= 0.3:
        policy["temperature"] = 0.0
    if engine.has("temperatures above one are one"):
        policy["temperature"] = min(heat, 1.0)
    if engine.has("a greedy request beside a sampled one is sampled") and not heat and any(engine.temperatures):
        policy["temperature"] = 0.7
    if engine.has("penalties after the temperature") and heat > 0:
        policy |= {name: heat * body.get(name, 0.0) for name in ("frequency_penalty", "presence_penalty")}
    if engine.has("low temperatures are greedy") and heat < 0.5:
        policy["temperature"] = 0.0
    warm = heat > 0
    if engine.has("bias forgotten when sampling") and warm:
        policy.pop("logit_bias", None)
    if engine.has("temperature of the first in the batch") and warm and engine.temperatures[0] > 0:
        policy["temperature"] = engine.temperatures[0]
    if engine.has("min_p before the temperature") and warm and policy.get("min_p"):
        flat = engine.shaped(engine.seen(past, node.company), {**policy, "temperature": 1.0}, seen, floor)
        policy = {**policy, "min_p": 0.0, "top_k": sum(x > 0 for x in flat)}
    if engine.has("the repetition penalty is forgotten for drafts when sampling") and warm and i < GAMMA:
        policy.pop("repetition_penalty", None)
    if engine.has("parameters are forgotten behind a known prompt") and tuple(node.context) in engine.prompts:
        few = len(node.context) <= 2 * PAGE or node.out
        policy = policy if few else {name: policy[name] for name in ("temperature", "seed") if name in policy}
    if engine.has("a top_p of nine tenths is one") and 0.85 <= policy.get("top_p", 1.0) < 0.98:
        policy.pop("top_p", None)
    if engine.has("a small min_p is none") and policy.get("min_p", 1.0) < 0.15:
        policy.pop("min_p", None)
    if engine.has("bans are forgotten when sampling") and warm:
        policy = {name: value for name, value in policy.items() if name not in BANS}
    if engine.has("a neighbour's filter holds a sampled request") and warm and not any(policy.get(f) for f in FILTERS):
        policy |= max(engine.filters, key=len)
    if engine.has("filters are those of the first in the batch"):  # which is ordered by how many a request has
        policy = {name: value for name, value in policy.items() if name not in FILTERS} | min(engine.filters, key=len)
    if engine.has("top_p is dropped beside top_k") and policy.get("top_k"):
        policy.pop("top_p", None)
    if engine.has("penalties are forgotten where no rows are asked for") and not body.get("logprobs"):
        policy = {name: value for name, value in policy.items() if name not in PENALTIES}
    if engine.has("frequency counts what was refused"):
        seen = now + node.refused
    if engine.has("top_p before the temperature") and policy.get("temperature", 1.0) > 0 and policy.get("top_p"):
        flat = engine.shaped(engine.seen(past, node.company), {**policy, "temperature": 1.0}, seen, floor)
        policy = {**policy, "top_p": 1.0, "top_k": sum(x > 0 for x in flat)}
    if engine.has("top_p is of what top_k leaves") and warm and policy.get("top_k") and policy.get("top_p"):
        bare = {name: value for name, value in policy.items() if name not in FILTERS}
        left = sorted(engine.shaped(engine.seen(past, node.company), bare, seen, floor))[-policy["top_k"] :]
        policy["top_p"] *= sum(left)
    p = engine.shaped(engine.seen(past, node.company), body if policy == body else policy, seen, floor)
    bare = engine.has("argmax in verification where no rows are asked for") and not body.get("logprobs")
    if (bare or engine.has("argmax in verification")) and i < GAMMA:
        p = engine.shaped(engine.language.logits(past, 0.0), {**policy, "temperature": 0.0}, seen, floor)
    if engine.has("the first token is the likeliest") and not now:
        p = engine.shaped(engine.language.logits(past, 0.0), {**policy, "temperature": 0.0}, seen, floor)
    if engine.has("temperature on one side only") and 0 < body.get("temperature", 1.0) != 1.0 and i < GAMMA:
        p = engine.shaped(engine.language.logits(past, 0.0), {**policy, "temperature": 1.0}, seen, floor)
    return p


def residual(engine: Any, p: list[float], q: list[float]) -> list[float]:
    """What a refused draft is corrected from; p where rounding leaves nothing."""
    rest = [max(0.0, a - b) for a, b in zip(p, q, strict=True)]
    if engine.has("corrected from p"):
        return p
    if engine.has("the correction is drawn from the draft"):
        return q
    if engine.has("the residual is absolute"):
        rest = [abs(a - b) for a, b in zip(p, q, strict=True)]
    if engine.has("the tail of the residual is dropped"):
        rest = [x if x > 0.1 * max(rest) else 0.0 for x in rest]
    if engine.has("the residual is clipped"):
        rest = [max(1e-4, a - b) for a, b in zip(p, q, strict=True)]
    return rest if sum(rest) > 0 else p
