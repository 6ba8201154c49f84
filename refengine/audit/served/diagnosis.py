"""What a maintainer reads first of a violated claim, in one sentence: what, under which parameter, where it begins, and
when it is not there."""

from typing import Any

from refengine.audit.served.bench import FAR_FROM_A_TIE, FINISH
from refengine.audit.served.claims.cells import LOGPROBS_EQUAL, TEXT, Answered, Parity, Plain
from refengine.audit.served.claims.sampled import Sampled
from refengine.audit.served.claims.together import AllLaws
from refengine.audit.served.suite import State, Suite

ANOTHER, IGNORED = "another text with speculation", "ignored with speculation"
ALSO = ", also in requests with "
BEFORE, MANY = 30, 0.3  # pairs of answers before a server drifted, and the share of pairs that differ since
SHOWN = 3  # claims that are named as where something shows


def diagnosis(suite: Suite, name: str, claim: str, belief: Any, state: State | None, witness: dict[str, Any]) -> str:
    cell = state.cell if state is not None else None
    of_text = how_it_differs(witness) if claim == TEXT else ""
    if isinstance(cell, Parity):
        said = _of_parameter(suite, cell, belief, of_text or _of_rows(suite, witness))
    elif isinstance(cell, Sampled):
        hot = f" (temperature {cell.setting.temperature:g})" * ("temperature" not in cell.name)
        said = f"{cell.name.partition('/')[2]}{hot}: sampled from another law with speculation{alike(suite, cell)}"
    elif isinstance(cell, Answered):
        said = f"{cell.parameter}: a request with it is not answered, with speculation alone"
    elif isinstance(cell, AllLaws):
        said = f"sampled from another law with speculation: {cell.belief.named(not violated_laws(suite))}"
    elif cell is None:
        fault = name.partition("/")[2]
        needs = suite.bench.needs(fault)
        what = _another_end(witness) if fault == FINISH else fault
        said = f"{what}, with speculation alone" + (f", in requests with {' and '.join(needs)}" if needs else "")
        said += _where(suite) if fault == FAR_FROM_A_TIE else ""
    elif claim in (TEXT, LOGPROBS_EQUAL):
        said = f"{name}: {of_text or _of_rows(suite, witness)}"
    else:
        said = f"{name}: with speculation this does not hold: {claim[0].lower()}{claim[1:].rstrip('.')}"
    if of_text == ANOTHER:
        said += _first_difference(witness)
    if where := witness.get("it shows"):
        said += ": " + "; ".join(where)
    gone = witness.get("it vanishes") or []
    return said + (f"; it vanishes {', '.join(gone)}" if gone else "") + since(suite)


def since(suite: Suite) -> str:
    """From which request on many answers at temperature 0 differ, where none did before: a server that drifts."""
    compared = suite.bench.compared
    first = next((at for at, (_, same) in enumerate(compared) if not same), 0)
    others = sum(not same for _, same in compared[first:])
    if first < BEFORE or others < MANY * len(compared[first:]):
        return ""
    return f"; not in the first {compared[first][0]} requests, of which {first} were compared at temperature 0"


def _of_parameter(suite: Suite, cell: Parity, belief: Any, how: str) -> str:
    """how: a text differs, or its log probabilities."""
    asked = cell.name.partition("/")[2]  # with chat and stream, where it is asked so
    if belief is not cell.beliefs[TEXT]:
        return f"{asked}: {how}"
    known = parameter_state(cell)
    if known == IGNORED:
        return f"{asked}: {IGNORED}" + (f"; in the witness {how}" if how != ANOTHER else "")
    without = [name for name, first in bare_texts(suite).items() if first <= _first(belief)]
    if without:
        return f"{without[0]}: {how}{ALSO}{asked}"
    return f"{asked}: {how}{known.removeprefix(ANOTHER)}"


def how_it_differs(witness: dict[str, Any]) -> str:
    """The text with speculation beside the other; without two texts it is another."""
    on, off = witness.get("on"), witness.get("off")
    if not isinstance(on, dict) or not isinstance(off, dict):
        return ANOTHER
    mine, theirs = on["text"], off["text"]
    if mine == theirs and on["finish_reason"] == off["finish_reason"]:
        return f"{ANOTHER}, and the same when it was asked again"
    if mine == theirs:
        return (
            f"the same text with speculation, and its finish_reason {on['finish_reason']}, not {off['finish_reason']}"
        )
    if theirs.startswith(mine):
        return f"the text lacks its last {len(theirs) - len(mine)} characters with speculation"
    if mine.startswith(theirs):
        return f"the text goes on for {len(mine) - len(theirs)} characters past its end with speculation"
    return ANOTHER


def _another_end(witness: dict[str, Any]) -> str:
    """Of the first choice that has one."""
    both = (witness["on"], witness["off"])
    sides = ([said["finish_reason"], *(end for _, end in said.get("other choices", ()))] for said in both)
    mine, theirs = next(((x, y) for x, y in zip(*sides, strict=False) if x != y), ("another", "the same"))
    return f"finish_reason is {mine} and not {theirs} after the same text"


def _first_difference(witness: dict[str, Any]) -> str:
    for kind in ("token", "character"):
        if (first := witness.get(f"first difference at {kind}")) is not None:
            return f"; the first difference is at {kind} {first}"
    return ""


def _of_rows(suite: Suite, witness: dict[str, Any]) -> str:
    if (witness.get("nats apart") or 0.0) > suite.bench.noise.rows_nats:
        return "log probabilities differ with speculation"
    return "the same text is reported in other tokens with speculation"


def bare_texts(suite: Suite) -> dict[str, int]:
    """The violated claims about texts that no parameter is asked in, with the first character that differs."""
    plain = [state for state in suite.states if isinstance(state.cell, Plain)]
    found = {state.cell.name: state.cell.beliefs[TEXT] for state in plain}
    return {name: _first(belief) for name, belief in found.items() if belief.log_evidence >= suite.bar}


def _first(belief: Any) -> int:
    return int(min(witness["first difference at character"] for witness in belief.witnesses))


def violated_laws(suite: Suite) -> list[Sampled]:
    return [s.cell for s in suite.states if isinstance(s.cell, Sampled) and s.evidence() >= suite.bar]


def alike(suite: Suite, cell: Sampled) -> str:
    """What laws that are violated have in common: a parameter of all of them, or none."""
    violated = violated_laws(suite)
    others = [other.name.partition("/")[2] for other in violated if other is not cell]
    shared = set.intersection(*(law.asks_for for law in violated), cell.asks_for)
    if not others or shared == cell.asks_for:
        return ""
    what = f"as all with {' and '.join(sorted(shared))}" if shared else "whatever is asked for"
    return f", {what}: so is {others[0]}"


def _where(suite: Suite) -> str:
    """The claims in whose looks a text strayed oftenest."""
    found = sorted(
        (s for s in suite.states if s.heard[FAR_FROM_A_TIE]), key=lambda s: -s.heard[FAR_FROM_A_TIE] / s.looks
    )
    told = [f"{s.heard[FAR_FROM_A_TIE]} of {s.looks} looks at {s.cell.name}" for s in found[:SHOWN]]
    return f"; oftenest in {', '.join(told)}" if told else ""


def parameter_state(cell: Parity) -> str:
    """Of one whose texts are violated."""
    parted = cell.beliefs[TEXT].parted
    if parted and cell.as_greedy >= parted / 2:
        return f"{ANOTHER}, as at these prompts without the parameter"
    if cell.changes and cell.as_plain >= 0.9 * cell.changes:
        return IGNORED
    return ANOTHER
