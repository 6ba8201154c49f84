"""`audit endpoint --known FOLDER`: one server that serves a model whose law is computed here, held to that law.

Each claim is a setting of temperature and policy. Every token of every choice is a look against its own row, so both
what speculation does and what it shares with plain decoding shows: a penalty that counts the prompt, a filter that is
not there, a temperature that is applied twice. A token that the policy leaves no chance is a violation by itself, but
for those that rounding can let in.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, log
from typing import Any

from torch import Tensor

from refengine.audit.common import MAX_UNSEEN_TV, Progress
from refengine.audit.served.ask import Ask, Choice, Failed, Gone, Refused, Subject
from refengine.audit.served.audit import Named, suspicion
from refengine.audit.served.belief import SIGN_NATS
from refengine.audit.served.claims.options import Options
from refengine.audit.served.claims.scores import PLACES
from refengine.audit.served.known.law import Ids, KnownLaw
from refengine.evidence.e_process_of_tokens import TokenEvidence
from refengine.evidence.power import ends_wealth
from refengine.evidence.rows import Rows
from refengine.report.finding import Finding, Quantity

TOKENS, CHOICES = 16, (8, 4, 1)  # of a completion; of a request, the first that the server takes
TURNS = 6  # requests of every claim before belief decides
IMPOSSIBLE = "a token comes that the policy leaves no chance"
DRAFT = "some tokens follow the law of the drafter"
SETTINGS: tuple[tuple[str, float, Options], ...] = (
    ("temperature 0", 0.0, {}),
    ("temperature 1", 1.0, {}),
    ("temperature 0.6", 0.6, {}),
    ("temperature 1.7", 1.7, {}),
    ("top_k", 1.0, {"top_k": 3}),
    ("top_p", 1.0, {"top_p": 0.6}),
    ("min_p", 1.0, {"min_p": 0.2}),
    ("temperature and top_p", 1.5, {"top_p": 0.5}),
    ("frequency_penalty", 1.0, {"frequency_penalty": 1.0}),
    ("presence_penalty", 1.0, {"presence_penalty": 1.5}),
    ("repetition_penalty", 1.0, {"repetition_penalty": 1.5}),
    ("logit_bias", 1.0, {"logit_bias": {"5": 3.0, "9": 2.0, "20": -4.0}}),
    ("bad_words", 1.0, {"bad_words": ["w9", "w33", "w40"]}),
    ("allowed_token_ids", 1.0, {"allowed_token_ids": list(range(2, 24, 3))}),
    ("min_tokens", 1.7, {"min_tokens": 6, "logit_bias": {"1": 2.0}}),
)


@dataclass
class Setting:
    """A claim. beside: what else the tokens may follow, by name, as (temperature, options)."""

    name: str
    temperature: float
    options: Options
    law: KnownLaw
    drafter: KnownLaw | None
    looks: int = 0
    impossible: int = 0
    witness: dict[str, Any] = field(default_factory=dict)
    refused: str = ""

    def __post_init__(self) -> None:
        bare = {name: value for name, value in self.options.items() if name == "logit_bias" and len(self.options) > 1}
        self.beside: dict[str, tuple[float, Options]] = {}
        if self.temperature not in (0.0, 1.0):
            self.beside["the temperature is ignored"] = (1.0, self.options)
            self.beside["the temperature is applied twice"] = (self.temperature**2, self.options)
        if self.options:
            self.beside["the parameter is ignored"] = (self.temperature, bare)
        for name in ("frequency_penalty", "presence_penalty", "repetition_penalty"):
            if name in self.options:
                value = self.options[name]
                twice = value**2 if name == "repetition_penalty" else 2 * value
                self.beside["the penalty counts twice"] = (self.temperature, {**self.options, name: twice})
        counting = {"the penalty counts the prompt"} if "the penalty counts twice" in self.beside else set()
        drafted = {DRAFT} if self.drafter else set()
        names = tuple(sorted({*self.beside, *counting, *drafted}))
        self.evidence = TokenEvidence(names, tuple(PLACES))
        self.counting = bool(counting)

    def ask(self, k: int, choices: int, seed: int) -> Ask:
        options = {**self.options, **({"n": choices} if choices > 1 else {})}
        return Ask((self.law.prompts[k % len(self.law.prompts)],), TOKENS, self.temperature, options, seed=seed)

    @property
    def log_evidence(self) -> float:
        return inf if self.impossible else self.evidence.log_evidence()

    def look(self, subject: Subject, choices: int) -> None:
        """One request. Raises Refused, Failed."""
        ask = self.ask(self.looks, choices, 1000 + self.looks)
        self.looks += 1
        answer = subject.send(ask)
        prompt = self.law.ids(ask.turns[0])
        texts = [self._ids(choice) for choice in answer.choices]
        rows = self.law.logits(prompt, texts)
        drafts = self.drafter.logits(prompt, texts) if self.drafter else [None] * len(texts)
        for text, logits, draft in zip(texts, rows, drafts, strict=True):
            for i, token in enumerate(text):
                if not self._token(prompt, text[:i], token, logits[i], None if draft is None else draft[i]):
                    self.impossible += 1
                    said = {"token": self.law.words[token], "position": i, "text": [self.law.words[x] for x in text]}
                    self.witness = self.witness or {"request": ask.summary(), "what": IMPOSSIBLE, **said}
        if not self.impossible:
            self.witness = {"request": ask.summary(), "the last of": self.looks}

    def _ids(self, choice: Choice) -> Ids:
        """Raises Failed for words that are not the fixture's."""
        try:
            ids = self.law.ids(choice.text)
        except KeyError as error:
            raise Failed(f"the answer has the word {error}, which the exported model does not have") from None
        return (*ids, self.law.end) if choice.finish == "stop" else ids

    def _token(self, prompt: Ids, prefix: Ids, token: int, logits: Tensor, draft: Tensor | None) -> bool:
        """Counts one token; False where it is impossible."""
        p = self.law.row(logits, prompt, prefix, self.temperature, self.options)
        if not self.law.settled(p, logits, prompt, prefix, self.temperature, self.options):
            return True
        if p[token] <= 0:
            return False
        laws: dict[str, Rows] = {
            name: self.law.row(logits, prompt, prefix, temperature, options)
            for name, (temperature, options) in self.beside.items()
        }
        if self.counting:
            known = self.law.row(logits, (), prompt + prefix, self.temperature, self.options)
            laws["the penalty counts the prompt"] = known
        if draft is not None and self.drafter is not None:
            laws[DRAFT] = self.drafter.row(draft, prompt, prefix, self.temperature, self.options)
        places = [name for name, where in PLACES.items() if len(prefix) in where]
        self.evidence.add((*prompt, *prefix), places, token, p, laws)
        return True


def audit_law(
    subject: Subject, law: KnownLaw, drafter: KnownLaw | None, named: Named, requests: int, alpha: float, tell: Progress
) -> list[Finding]:
    """The claims about one server. Raises Refused where it takes no plain request, Gone."""
    subject.send(Ask((law.prompts[0],), 2, 1.0, seed=1))
    settings = [Setting(*setting, law, drafter) for setting in SETTINGS]
    bar, sent = log(len(settings) / alpha), 1
    choices = 1
    for choices in CHOICES:
        sent += 1
        try:
            subject.send(Ask((law.prompts[0],), 2, 1.0, {"n": choices}, seed=1))
            break
        except (Refused, Failed):
            continue
    while sent < requests and (open_ := [s for s in settings if not s.refused and s.log_evidence < bar]):
        suspects = [s for s in open_ if s.log_evidence > SIGN_NATS and s.looks >= TURNS]
        order = sorted(open_, key=lambda s: s.looks)
        chosen = max(suspects, key=lambda s: s.log_evidence) if suspects and sent % 2 else order[0]
        sent += 1
        try:
            chosen.look(subject, choices)
        except Gone:
            raise
        except (Refused, Failed) as error:
            chosen.refused = str(error)
        tell(f"known/{chosen.name}, {sent} requests", sent / requests)
    return list(_findings(settings, named, bar, alpha))


def _findings(settings: list[Setting], named: Named, bar: float, alpha: float) -> Iterator[Finding]:
    lacking = {s.name: s.refused for s in settings if s.refused}
    for setting in settings:
        if not setting.refused:
            yield _finding(setting, named, bar, alpha)
    yield named.finding(
        "parameters",
        "What the server is asked it does, or says that it does not.",
        verdict="consistent",
        method="each asked for once",
        notes=[f"{name}: {why}" for name, why in lacking.items()],
    )


def _finding(setting: Setting, named: Named, bar: float, alpha: float) -> Finding:
    evidence, log_evidence = setting.evidence, setting.log_evidence
    nats = Quantity(value=round(min(log_evidence, 1e6), 2), tolerance=1e9)
    numbers = {"requests": setting.looks, "tokens": evidence.tokens, "impossible": setting.impossible, "nats": nats}
    method = f"sequential evidence, each token against its row, alpha {alpha:g} over all claims"
    common: dict[str, Any] = {"method": method, "numbers": numbers}
    claim = f"Under {setting.name}, each token follows the law of the exported model."
    name = f"known/{setting.name}"
    if log_evidence >= bar:
        like = IMPOSSIBLE if setting.impossible else evidence.looks_like()
        return named.finding(
            name, claim, verdict="violated", witness=setting.witness, diagnosis=f"{setting.name}: {like}", **common
        )
    least = ends_wealth(evidence.tokens, alpha / 15, 3.0 * 90)
    if reason := suspicion(log_evidence, setting.looks):
        return named.finding(name, claim, verdict="not tested", reason=reason, **common)
    if least > MAX_UNSEEN_TV:
        reason = f"{evidence.tokens} tokens would not show a total variation of {least:.2g}: more --requests"
        return named.finding(name, claim, verdict="not tested", reason=reason, **common)
    note = f"Mass of {least:.2g} moved onto or off the likely tokens would have been seen 99% of the time."
    return named.finding(name, claim, verdict="consistent", notes=[note], **common)
