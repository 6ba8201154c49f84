"""`refengine campaign`: draws by the billion, in shards on one machine or many, with a journal that is gone on with."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from refengine.cli.checks import Alpha, Seed, Signature, check_alpha, check_folder, seed_of
from refengine.cli.output import finish, finish_grouped
from refengine.cli.reporting import RECORD, Reporting, reports
from refengine.errors import BadInput
from refengine.evidence.alpha import ALPHA
from refengine.jobs.options import CLUSTER, WORKERS

if TYPE_CHECKING:
    from refengine.jobs.run import Job
    from refengine.report.journal import Line

JOURNAL = "Keep the result of every shard; a later run with the same options goes on where this one was."
Workers = Annotated[int | None, typer.Option(min=1, help=WORKERS)]
Cluster = Annotated[str, typer.Option(metavar="ADDRESS", help=CLUSTER)]
Kept = Annotated[Path | None, typer.Option("--journal", metavar="FILE", help=JOURNAL)]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over, whatever the journal holds.")]


@dataclass(frozen=True)
class Where:
    """Where shards run, and where their results are kept."""

    workers: int | None
    cluster: str
    journal: Path | None
    fresh: bool

    def run(
        self, jobs: "Sequence[Job]", settings: Mapping[str, Any], made: Any, preload: Sequence[str] = ()
    ) -> "list[Line]":
        """Every shard, in its order. made: the type of a result."""
        from refengine.jobs.campaign import campaign, journal_of
        from refengine.jobs.options import workers

        kept = journal_of(self.journal, settings, fresh=self.fresh, made=made) if self.journal else None
        with kept or nullcontext():
            return campaign(jobs, workers(self.workers, self.cluster, preload), kept)


@reports(RECORD)
def engine(
    rules: Annotated[
        list[str] | None, typer.Argument(metavar="[RULE]...", help="By default every lossless one.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Of each rule.")] = 10_000_000,
    seed: Seed = "0",
    workers: Workers = None,
    cluster: Cluster = "",
    journal: Kept = None,
    fresh: Fresh = False,
    *,
    reporting: Reporting,
) -> None:
    """The engine's own lossless rules, held to the target at length."""
    from refengine.exact.rules import RULES

    lossless = [name for name, card in RULES.items() if card.law == "target"]
    chosen, number = rules or lossless, campaign_seed(seed)
    if unknown := [rule for rule in chosen if rule not in lossless]:
        raise BadInput(f"no lossless rule is called {unknown[0]!r}: one of {', '.join(lossless)}")
    from refengine.jobs.campaign import Counts, merged
    from refengine.selfcheck import at_length

    settings = {"campaign": "engine", "rules": chosen, "rounds": rounds, "seed": number}
    shards, preload = at_length.jobs(chosen, rounds, number), (at_length.__name__,)
    lines = Where(workers, cluster, journal, fresh).run(shards, settings, Counts, preload)
    counts = merged(line.made for line in lines)
    finish_grouped(at_length.findings(chosen, rounds, number, counts), reporting)


@reports(RECORD)
def kernel(
    subject: Annotated[str, typer.Argument(help="MODULE:FUNCTION.")],
    signature: Annotated[Signature, typer.Option(help="Which plain signature the function has.")] = Signature.verify,
    path: Annotated[Path | None, typer.Option(help="Folder to put on the import path, on every machine.")] = None,
    calls: Annotated[int, typer.Option(min=1, help="Of the function, over all inputs.")] = 10_000_000,
    seed: Seed = "0",
    alpha: Alpha = ALPHA,
    workers: Workers = None,
    cluster: Cluster = "",
    journal: Kept = None,
    fresh: Fresh = False,
    *,
    reporting: Reporting,
) -> None:
    """A verification function over far more calls than an audit makes: what is too small for `audit kernel` shows."""
    check_folder(path)
    check_alpha(alpha)
    from refengine.audit.kernel.request import Request, opened

    folder, number = str(path.absolute()) if path else str(Path.cwd()), campaign_seed(seed)
    request = Request(subject, signature.value, folder, number, alpha, None, calls)
    request.check_that_it_exists()
    from refengine.audit.kernel import at_length

    opened(request).close()  # what cannot be loaded is said once, and here
    settings = {"campaign": "kernel", **request.arguments()}
    lines = Where(workers, cluster, journal, fresh).run(
        at_length.jobs(request), settings, at_length.Answers, ("torch",)
    )
    finish([at_length.finding(request, [line.made for line in lines])], reporting)


@reports(("allow_untested", *RECORD))
def length(
    only: Annotated[str, typer.Argument(help="Only the tests with this in their names.")] = "",
    workers: Workers = None,
    cluster: Cluster = "",
    journal: Kept = None,
    fresh: Fresh = False,
    *,
    reporting: Reporting,
) -> None:
    """The statistical tests of length, each in a process of its own (hours of one core; in the source tree)."""
    from refengine.selfcheck import tests_at_length as tests

    where, jobs = Where(workers, cluster, journal, fresh), tests.jobs(only)
    lines = where.run(jobs, {"campaign": "length", "only": only}, tests.Tested)
    found = [tests.finding(line.step, line.made) for line in lines]
    finish_grouped(found, reporting)


def campaign_seed(text: str) -> int:
    seed = seed_of(text)
    if not 0 <= seed < 2**32:
        raise BadInput(f"--seed {text} is not below 2^32: a campaign numbers its shards with the other bits")
    return seed
