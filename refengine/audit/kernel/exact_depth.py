"""The exact depth of an audit: the laws on small inputs, where the subject's own random calls can be intercepted.

An enumerated law is believed when the subject keeps no state between calls and sampled calls agree with it.
"""

from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from refengine.audit.common import Progress
from refengine.audit.inputs.enumerable import exact_cases
from refengine.audit.kernel import campaign
from refengine.audit.kernel.campaign import seeds, send
from refengine.audit.kernel.exact_law import ExactLaw, exact_law
from refengine.audit.kernel.plan import Plan
from refengine.audit.kernel.request import Request
from refengine.audit.sandbox.child import Child, Outcome

CALLS_BESIDE_A_WRONG_LAW = 200  # that have to agree with each further law
STATEFUL = "the same calls in another order were answered differently"


@dataclass
class Exact:
    """The exact laws on the small inputs, why others are missing, and the failure that ended the stage."""

    inputs: int = 0  # that there are
    laws: list[ExactLaw] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: Outcome | None = None
    stateful: bool = False  # calls before a call decide its answer too

    def violated(self) -> str | None:
        """The input of the clearest violation."""
        violated = [law for law in self.laws if law.violates()]
        return max(violated, key=lambda law: law.worst.tv).case.name if violated else None


def _left_out(why: str, failure: Outcome | None = None, stateful: bool = False) -> Exact:
    """No law counts, those included that were enumerated before."""
    return Exact(notes=[f"The exact depth was left out: {why}"], failure=failure, stateful=stateful)


def _failed(outcome: Outcome) -> Exact:
    return _left_out(str(outcome), outcome)


def exact_depth(request: Request, child: Child, plan: Plan, until: float, progress: Progress) -> Exact:
    """The exact laws that the plan has runs for, until the clock ends it; a call that fails ends it too."""
    if request.is_program():
        return _left_out("the random calls of a program cannot be intercepted")
    selected = exact_cases(request.signature == "verify_batch")
    found, runs = Exact(len(selected)), plan.runs
    for i, item in enumerate(selected):
        if runs <= 0 or monotonic() > until:
            why = f"the inputs before it took {'the time' if runs > 0 else f'the {plan.runs} runs'}"
            found.notes.append(f"{item.name}: sampled only ({why})")
            continue
        progress(f"exact law: {item.name}", i / len(selected))
        send(child, item)

        def ask(op: str, name: str = item.name, **more: Any) -> Outcome:
            return child.ask({"op": op, "name": name, **more}, campaign.HANG_SECONDS)

        # A law that is wrong is made again in a fresh process: the laws beside it only help to name the defect.
        agreeing = plan.agreeing if found.violated() is None else min(plan.agreeing, CALLS_BESIDE_A_WRONG_LAW)
        drawn = seeds(request.seed, item.name, 0, agreeing)
        same = ask("stateless", seeds=seeds(request.seed, item.name, 0, plan.reordered))
        if not same.ok:
            return _failed(same)
        if not same.value:
            return _left_out(STATEFUL, stateful=True)
        reply = ask("exact", most=runs, seconds=max(until - monotonic(), 0.1))
        if not reply.ok:
            return _failed(reply)
        runs -= reply.value["spent"]
        if "unmodelled" in reply.value:
            found.notes.append(f"{item.name}: sampled only ({reply.value['unmodelled']})")
            continue
        law = exact_law(item, reply.value)
        sample = ask("run", seeds=drawn, start=0, fresh=True, seconds=max(until - monotonic(), 0.1))
        if not sample.ok:
            return _failed(sample)
        if not law.agrees(sample.value["tokens"]):
            return _left_out(f"on {item.name!r} sampled calls do not follow the enumerated law", stateful=True)
        found.laws.append(law)
        found.notes.append(f"{item.name}: exact law over {law.runs} runs, TV {law.worst.tv:.1e}")
    return found
