"""`audit endpoint` and `audit generate`: the suite over two servers, or over two functions in a child process."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from refengine.audit.common import Progress
from refengine.audit.sandbox.child import Child
from refengine.audit.served.ask import Failed, Refused, Subject
from refengine.audit.served.audit import Named, findings, full_name
from refengine.audit.served.bench import LAW_CHOICES, PROMPTS, Bench, titled
from refengine.audit.served.plan import planned
from refengine.audit.served.suite import Suite, beliefs
from refengine.audit.served.transports.functions import opened
from refengine.audit.served.transports.http import Server
from refengine.audit.served.transports.journal import Journal, Journalled
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding, Recipe

REQUESTS = 3000


def audit_served(
    on: str,
    off: str,
    requests: int = REQUESTS,
    model: str | None = None,
    prompts: Sequence[str] = PROMPTS,
    only: str = "",
    journal: str | None = None,
    vocabulary: int = 0,
    law_choices: int = LAW_CHOICES,
    alpha: float = ALPHA,
    progress: Progress = lambda what, share: None,
) -> list[Finding]:
    """The claims about an OpenAI-compatible server with speculation, beside the same without.

    on, off   base addresses, up to and including /v1
    requests  the most that are sent to both sides together
    only      looks at the claims alone whose names begin so
    journal   a file that keeps answers; an audit that was stopped goes on with it
    vocabulary  tokens of the model: no greater id is asked for than this or answers tell
    law_choices  the most choices of a request whose law is sampled: some engines do not speculate in large batches
    Raises BadInput where a side takes no plain request.
    """
    asked = {"requests": requests, "prompts": list(prompts), "only": only, "alpha": alpha, "vocabulary": vocabulary}
    arguments = {"on": on, "off": off, "model": model, "law_choices": law_choices, **asked}
    recipe = Recipe(function=f"{__name__}:audit_served", arguments=arguments)
    named = Named("endpoint", f"{on} beside {off}", recipe)
    with ExitStack() as stack:
        sides: list[Subject] = [stack.enter_context(Server(base, model)) for base in (on, off)]
        if journal is not None:
            kept = Journal(Path(journal), f"{on} beside {off}" + (f", model {model}" if model else ""))
            sides = [Journalled(side, name, kept) for side, name in zip(sides, ("on", "off"), strict=True)]
        bench = Bench(sides[0], sides[1], prompts, vocabulary=vocabulary, law_choices=law_choices)
        return audited(bench, named, progress, requests, only, alpha)


@dataclass(frozen=True)
class Opened:
    """An audit of two servers that is planned and not yet run: what a test runner needs."""

    suite: Suite
    named: Named

    def names(self) -> list[str]:
        """Of the claims that will be looked at."""
        found = [full_name(name, claim, state) for name, claim, _, state in beliefs(self.suite)]
        more = map(titled, self.suite.bench.of_answers())
        return [*found, *(name for name in more if name not in found)]

    def run(self) -> dict[str, Finding]:
        """The findings by the names of their claims."""
        self.suite.run(lambda what, share: None)
        found = findings(self.suite, self.named)
        return {finding.id.removeprefix(f"audit.{self.named.kind}/"): finding for finding in found}


@contextmanager
def opened_servers(on: str, off: str, requests: int = REQUESTS, model: str | None = None) -> Iterator[Opened]:
    """Two servers beside each other, planned. Raises BadInput where one takes no plain request."""
    arguments = {"on": on, "off": off, "requests": requests, "model": model}
    named = Named("endpoint", f"{on} beside {off}", Recipe(function=f"{__name__}:audit_served", arguments=arguments))
    with Server(on, model) as here, Server(off, model) as there, Bench(here, there) as bench:
        yield Opened(_planned(bench, requests, "", ALPHA), named)


def audit_known(
    on: str,
    known: str,
    requests: int = REQUESTS,
    model: str | None = None,
    alpha: float = ALPHA,
    progress: Progress = lambda what, share: None,
) -> list[Finding]:
    """The claims about one server that serves FOLDER/target of `refengine fixtures export FOLDER`.

    Raises BadInput where the folder is none, or the server takes no plain request.
    """
    arguments = {"on": on, "known": known, "requests": requests, "model": model, "alpha": alpha}
    recipe = Recipe(function=f"{__name__}:audit_known", arguments=arguments)
    named = Named("endpoint", f"{on} beside the law of {known}", recipe)
    from refengine.audit.served.known.audit import audit_law  # torch, which two servers do not need
    from refengine.audit.served.known.law import KnownLaw

    law, drafter = (KnownLaw.load(Path(known), part) for part in ("target", "drafter"))
    with Server(on, model) as server:
        try:
            return audit_law(server, law, drafter, named, requests, alpha, progress)
        except (Refused, Failed) as error:
            raise BadInput(str(error)) from None


def audit_generate(
    on: str,
    off: str,
    path: str | None = None,
    requests: int = REQUESTS,
    prompts: Sequence[str] = PROMPTS,
    only: str = "",
    alpha: float = ALPHA,
    progress: Progress = lambda what, share: None,
) -> list[Finding]:
    """The claims about functions named "module:function" (functions.py). path: a folder put on the import path.

    Raises BadInput where one cannot be loaded or takes no plain request.
    """
    asked = {"requests": requests, "prompts": list(prompts), "only": only, "alpha": alpha}
    arguments = {"on": on, "off": off, "path": path, **asked}
    recipe = Recipe(function=f"{__name__}:audit_generate", arguments=arguments)
    named = Named("generate", f"{on} beside {off}", recipe)
    with Child("refengine.audit.served.transports.functions:make", path=path) as child:
        sides = opened(child, (on, off))
        return audited(Bench(sides[0], sides[1], prompts, together=False), named, progress, requests, only, alpha)


def audited(bench: Bench, named: Named, progress: Progress, requests: int, only: str, alpha: float) -> list[Finding]:
    with bench:
        suite = _planned(bench, requests, only, alpha)
        suite.run(progress)
        return list(findings(suite, named))


def _planned(bench: Bench, requests: int, only: str, alpha: float) -> Suite:
    try:
        plan = planned(bench, only)
    except (Refused, Failed) as error:
        raise BadInput(str(error)) from None
    if not (cells := [cell for cell in plan.cells if cell.name.startswith(only)]):
        names = ", ".join(sorted(cell.name for cell in planned(bench).cells))
        raise BadInput(f"no claim is called {only}...: {names}")
    plan.cells = cells
    return Suite(bench, plan, alpha, requests)
