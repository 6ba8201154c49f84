"""The exact depth of an audit: the laws on small inputs, where the subject's own random calls can be intercepted.

An enumerated law is believed when the subject keeps no state between calls and sampled calls agree with it.
"""

from dataclasses import dataclass, field
from time import monotonic

from refengine.audit.common import Progress
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.kernel.campaign import HANG_SECONDS, SLICE_SECONDS, seeds, send
from refengine.audit.kernel.exact_law import ExactLaw, exact_law
from refengine.audit.kernel.request import Request
from refengine.audit.sandbox.child import Child, Outcome

EXACT_SECONDS = 15.0  # per case; the count of runs ends it sooner (enumerate.py)
AGREEING_CALLS = 2000  # sampled calls that an enumerated law has to agree with before it is believed
REORDERED_CALLS = 16  # of them are made in the opposite order too
STATEFUL = "the same calls in another order were answered differently"
REPLY_SECONDS = SLICE_SECONDS + HANG_SECONDS  # for a few calls
SHARE_FOR_EXACT = 0.4  # of the time, at most


@dataclass
class Exact:
    """The exact laws on the small inputs, why others are missing, and the failure that ended the stage."""

    laws: list[ExactLaw] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: Outcome | None = None
    stateful: bool = False  # calls before a call decide its answer too

    def violated(self) -> str | None:
        """The input of the clearest violation."""
        violated = [law for law in self.laws if law.violates()]
        return max(violated, key=lambda law: law.worst.tv).case.name if violated else None


def _left_out(why: str, failure: Outcome | None = None, stateful: bool = False) -> Exact:
    """No law counts, since the enumerated ones are not believed."""
    return Exact([], [f"The exact depth was left out: {why}"], failure, stateful)


def _failed(outcome: Outcome) -> Exact:
    return _left_out(str(outcome), outcome)


def exact_depth(request: Request, child: Child, progress: Progress) -> Exact:
    """The exact depth, in a part of the time; a call that fails ends it."""
    found, until = Exact(), monotonic() + SHARE_FOR_EXACT * request.seconds
    if request.is_program():
        return _left_out("the random calls of a program cannot be intercepted")
    selected = exact_cases(request.signature == "verify_batch")
    for i, item in enumerate(selected):
        if monotonic() > until:
            found.notes.append(f"{item.name}: sampled only (the inputs before it took the time for exact laws)")
            continue
        progress(f"exact law: {item.name}", i / len(selected))
        send(child, item)
        drawn = seeds(request.seed, item.name, 0, AGREEING_CALLS)
        same = child.ask({"op": "stateless", "name": item.name, "seeds": drawn[:REORDERED_CALLS]}, REPLY_SECONDS)
        if not same.ok:
            return _failed(same)
        if not same.value:
            return _left_out(STATEFUL, stateful=True)
        seconds = min(EXACT_SECONDS, max(until - monotonic(), 0.1))
        reply = child.ask({"op": "exact", "name": item.name, "seconds": seconds}, 2 * EXACT_SECONDS)
        if not reply.ok:
            return _failed(reply)
        if "unmodelled" in reply.value:
            found.notes.append(f"{item.name}: sampled only ({reply.value['unmodelled']})")
            continue
        law = exact_law(item, reply.value)
        calls = {"name": item.name, "seeds": drawn, "start": 0, "fresh": True, "seconds": SLICE_SECONDS}
        sample = child.ask({"op": "run", **calls}, REPLY_SECONDS)
        if not sample.ok:
            return _failed(sample)
        if not law.agrees(sample.value["tokens"]):
            return _left_out(f"on {item.name!r} sampled calls do not follow the enumerated law", stateful=True)
        found.laws.append(law)
        found.notes.append(f"{item.name}: exact law over {law.runs} runs, TV {law.worst.tv:.1e}")
    return found
