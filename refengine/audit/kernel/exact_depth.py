"""The exact depth of an audit: the laws of small inputs, where the subject's own random calls can be intercepted.

An enumerated law is believed when the subject keeps no state between calls and sampled calls agree with it.
"""

from dataclasses import dataclass, field
from time import monotonic

from refengine.audit.common import Progress
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.kernel.campaign import HANG_SECONDS, SLICE_SECONDS, Drive, End, seeds
from refengine.audit.kernel.exact_law import ExactLaw, exact_law
from refengine.audit.kernel.request import Request
from refengine.audit.sandbox.child import Outcome

EXACT_SECONDS = 15.0  # per case; the count of runs ends it sooner (enumerate.py)
AGREEING_CALLS = 2000  # sampled calls that an enumerated law has to agree with before it is believed
FEW = 16  # of them are made in the opposite order too
STATEFUL = "the same calls in another order were answered differently"
PATIENCE = SLICE_SECONDS + HANG_SECONDS  # with a few calls
SHARE_FOR_EXACT = 0.4  # of the time, at most


@dataclass
class Exact:
    """The exact laws on the small inputs, what there is to say about those that are missing, and an end met there."""

    laws: list[ExactLaw] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    end: End | None = None
    stateful: bool = False  # what came before a call decides its answer too

    def violated(self) -> str | None:
        """The input of the clearest violation."""
        violated = [law for law in self.laws if law.violates()]
        return max(violated, key=lambda law: law.worst.tv).case.name if violated else None


def _left_out(why: str, end: End | None = None, stateful: bool = False) -> Exact:
    """No law counts: what was enumerated is not to be believed."""
    return Exact([], [f"The exact depth was left out: {why}"], end, stateful)


def _ended(outcome: Outcome) -> Exact:
    return _left_out(str(outcome), End(outcome.kind, str(outcome)))


def exact_depth(request: Request, drive: Drive, progress: Progress) -> Exact:
    """The exact depth, in a part of the time; a subject that ends a call in another way than by answering shows it."""
    found, until = Exact(), monotonic() + SHARE_FOR_EXACT * request.seconds
    if request.is_program():
        return _left_out("the random calls of a program cannot be intercepted")
    told = exact_cases(request.signature == "verify_batch")
    for i, item in enumerate(told):
        if monotonic() > until:
            found.notes.append(f"{item.name}: sampled only (the inputs before it took the time for exact laws)")
            continue
        progress(f"exact law: {item.name}", i / len(told))
        drive.add(item)
        drawn = seeds(request.seed, item.name, 0, AGREEING_CALLS)
        same = drive.child.ask({"op": "stateless", "name": item.name, "seeds": drawn[:FEW]}, PATIENCE)
        if not same.ok:
            return _ended(same)
        if not same.value:
            return _left_out(STATEFUL, stateful=True)
        seconds = min(EXACT_SECONDS, max(until - monotonic(), 0.1))
        reply = drive.child.ask({"op": "exact", "name": item.name, "seconds": seconds}, 2 * EXACT_SECONDS)
        if not reply.ok:
            return _ended(reply)
        if "unmodelled" in reply.value:
            found.notes.append(f"{item.name}: sampled only ({reply.value['unmodelled']})")
            continue
        law = exact_law(item, reply.value)
        calls = {"name": item.name, "seeds": drawn, "start": 0, "fresh": True, "seconds": SLICE_SECONDS}
        sample = drive.child.ask({"op": "run", **calls}, PATIENCE)
        if not sample.ok:
            return _ended(sample)
        if not law.agrees(sample.value["tokens"]):
            return _left_out(f"on {item.name!r} sampled calls do not follow the enumerated law", stateful=True)
        found.laws.append(law)
        found.notes.append(f"{item.name}: exact law over {law.runs} runs, TV {law.worst.tv:.1e}")
    return found
