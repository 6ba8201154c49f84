"""The suite as findings: one for each claim, and one that says which parameters the two sides take.

What a server honestly refuses or lacks is said there, and is not "not tested": that is kept for claims that could be
looked at and were not looked at enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from refengine.audit.served.belief import Faults
from refengine.audit.served.bench import FAR_FROM_A_TIE, ROWS, Bench, titled
from refengine.audit.served.claims.cells import LOGPROBS_EQUAL, TEXT, Parity
from refengine.audit.served.claims.sampled import Law
from refengine.audit.served.claims.shared_rows import RESCORED, SHARED_ROWS
from refengine.audit.served.claims.together import Together
from refengine.audit.served.diagnosis import ALSO, diagnosis, parameter_state
from refengine.audit.served.reduce import WITHOUT_ANY, WITHOUT_IT
from refengine.audit.served.suite import SUSPECT_NATS, State, Suite, beliefs
from refengine.report.finding import Finding, Quantity, Recipe

SOURCE = "Leviathan et al. 2023, App. A.1: speculation changes nothing that a user is sent"
OF_ROWS = (LOGPROBS_EQUAL, RESCORED, SHARED_ROWS)


@dataclass(frozen=True)
class Named:
    """Who was audited, and how the findings are made again."""

    kind: str  # endpoint | generate
    subject: str
    recipe: Recipe

    def finding(self, name: str, claim: str, **more: Any) -> Finding:
        """One about a third party, whose noise is its own."""
        return Finding(
            id=f"audit.{self.kind}/{name}",
            subject=self.subject,
            claim=claim,
            source=SOURCE,
            role="subject",
            recipe=self.recipe,
            replay="statistical",
            **more,
        )


def findings(suite: Suite, named: Named) -> Iterator[Finding]:
    """One a claim that both sides let be asked: what is violated first, of that what says most of the cause; the others
    in the order of the suite. Then what they take. Where few claims were asked for, what all answers are held to is
    said if it does not hold."""
    told = [told for told in beliefs(suite) if told[3] is None or _asked(*told[1:3], told[3])]
    found = [(_finding(suite, named, *one), one[3]) for one in told]
    for finding, state in sorted(found, key=lambda one: _says_less(*one)):
        if state is not None or finding.verdict != "consistent" or not suite.plan.only:
            yield finding
    yield _parameters(suite, named)
    if suite.gone:
        yield named.finding(
            "there to the end", "Both sides answer.", verdict="not tested", reason=suite.gone, method="none"
        )


def _asked(claim: str, belief: Any, state: State) -> bool:
    return not (state.lacking or _not_done(state) or _no_tokens(claim, belief, state))


def _says_less(finding: Finding, state: State | None) -> int:
    """The order of what is violated. What is not there without its parameter, or is told by one answer, has its cause
    in its name; a claim about a parameter says the least where other requests show it too, or may."""
    if finding.verdict != "violated":
        return 5
    witness = finding.witness or {}
    if state is None:
        return 2 if FAR_FROM_A_TIE in finding.id else 1
    if not isinstance(state.cell, Parity):
        return 3 if WITHOUT_ANY in witness.get("it shows", ()) else 2
    needed = WITHOUT_IT in witness.get("it vanishes", ()) and ALSO not in finding.diagnosis
    return 0 if needed else 4


def full_name(name: str, claim: str, state: State | None) -> str:
    """Of a finding, without what was audited."""
    several = state is not None and len(state.cell.beliefs) > 1
    return name + (f": {claim}" if several else "")


def _not_done(state: State) -> bool:
    """The side without speculation takes it and does not do it."""
    return isinstance(state.cell, Parity) and 0 < state.cell.looks == state.cell.sampled


def _no_tokens(claim: str, belief: Any, state: State) -> bool:
    """Its texts were compared, and none of them had a token whose log probability could be."""
    return claim == LOGPROBS_EQUAL and not belief.looks and state.cell.beliefs[TEXT].looks > 0


def _finding(suite: Suite, named: Named, name: str, claim: str, belief: Any, state: State | None) -> Finding:
    method = f"sequential evidence, {belief.looks} looks, alpha {suite.alpha:g} over all claims"
    numbers = {**belief.counts(), "nats": Quantity(value=round(belief.log_evidence, 2), tolerance=1e9)}

    def told(verdict: str, **more: Any) -> Finding:
        return named.finding(
            full_name(name, claim, state),
            _sentence(claim, name),
            verdict=verdict,
            method=method,
            numbers=numbers,
            **more,
        )

    if belief.log_evidence >= suite.bar and (wrong := misread(suite, belief)):
        reason = (
            f"what speaks against it is read off rows of log probabilities, which are wrong ({wrong}): mend them first"
        )
        return told("not tested", reason=reason)
    if belief.log_evidence >= suite.bar:
        small = (state.small or {}) if state is not None and claim != LOGPROBS_EQUAL else {}
        witness = small if "request" in small or "requests" in small else belief.witnesses[0] | small
        return told("violated", witness=witness, diagnosis=diagnosis(suite, name, claim, belief, state, witness))
    if reason := _untested(suite, belief, state):
        return told("not tested", reason=reason, notes=_example(belief))
    return told("consistent", notes=[belief.excluded(suite.bar), *_without_too(belief)])


def misread(suite: Suite, belief: Any) -> str:
    """The claim about rows that is violated, where a law is held to be another by rows alone; else ""."""
    if not isinstance(belief, Law | Together) or belief.of_texts >= suite.bar:
        return ""
    told = ((full_name(name, claim, state), claim, belief) for name, claim, belief, state in beliefs(suite))
    of_rows = ((n, belief) for n, claim, belief in told if claim in OF_ROWS or n == titled(ROWS))
    wrong = (n for n, belief in of_rows if belief.log_evidence >= suite.bar)
    return next(wrong, "")


def _example(belief: Any) -> list[str]:
    return [f"An example: {belief.witnesses[0]}"] if belief.signs and belief.witnesses else []


def _untested(suite: Suite, belief: Any, state: State | None) -> str:
    """Why nothing can be said of a claim; "" where something can."""
    if state is not None and state.given_up:
        return state.failed
    if not belief.looks:
        why = (state.failed or state.refused) if state is not None else ""
        return f"no answer showed anything of it: {why}" if why else "no answer showed anything of it"
    return suspicion(belief.log_evidence, belief.looks) or str(belief.unsaid(suite.bar))


def suspicion(log_evidence: float, looks: int) -> str:
    """Why a claim is left open that has some evidence against it; "" where there is none."""
    if log_evidence <= SUSPECT_NATS:
        return ""
    return f"there is some evidence against it in {looks} looks, too little to decide: more --requests"


def _without_too(belief: Any) -> list[str]:
    if isinstance(belief, Faults) and (there := belief.counts()["without"]):
        return [f"It shows without speculation too, in {there} of {belief.looks} looks."]
    return []


def _sentence(claim: str, name: str) -> str:
    return claim if claim.endswith(".") else f"Under {name}, {claim}."


def _parameters(suite: Suite, named: Named) -> Finding:
    """What became of every parameter: honoured, wrong, without effect, or why it could not be asked."""
    states: dict[str, str] = {}
    for state in suite.states:
        cell = state.cell
        if not isinstance(cell, Parity):
            continue
        name = cell.name.removeprefix("parity/")
        if state.evidence() >= suite.bar:
            states[name] = parameter_state(cell)
        elif state.given_up or state.lacking:
            states[name] = state.refused or state.failed
        elif cell.sampled == cell.looks > 0:
            states[name] = "not honoured without speculation: it samples where one token is left"
        elif cell.looks and state.evidence() > SUSPECT_NATS:
            states[name] = f"in doubt: {parameter_state(cell)}"
        elif cell.looks:
            states[name] = "honoured" if cell.changes else f"no effect in {cell.looks} completions, on neither side"
        else:
            states[name] = "not asked"
    refused = {state.cell.name: state.refused for state in suite.states if state.lacking}
    lacking = suite.plan.lacking | {name: why for name, why in refused.items() if not name.startswith("parity/")}
    noise = suite.bench.noise
    notes = [f"{name}: {why}" for name, why in lacking.items()]
    if noise.parted:
        notes.append(
            f"Without speculation {noise.parted} of {noise.looks} completions at temperature 0 are others in company:"
            f" up to a share of {noise.tie_share():.0%} may part, and log probabilities by {noise.rows_nats:.2g} nats."
        )
    notes += _prompts_alike(suite.bench)
    return named.finding(
        "parameters",
        "What a side is asked it does, or says that it does not.",
        verdict="consistent",
        method=f"each asked for once, then in the claims about it; {suite.bench.sent} requests in all",
        tables={"parameters": {"parameter": [*states], "state": [*states.values()]}},
        notes=notes,
    )


def _prompts_alike(bench: Bench) -> list[str]:
    """Where the model does not tell most prompts apart, as one that has hardly any of their words: what state and
    caches do to an answer would not show."""
    plain = {prompt: off.text for (prompt, _, chat, ends), (_, off) in bench.plain_answers.items() if not chat | ends}
    texts = len({*plain.values()})
    if 2 * texts > len(plain):
        return []
    return [
        f"{len(plain)} prompts have {texts} answers without speculation: the model may not know their words."
        " Give it ones that it knows: --prompts FILE."
    ]
