"""`refengine audit engine NAME`: a tiny model in its layout, its server where it has one, and the suite of claims."""

import tempfile
from pathlib import Path

from refengine.audit.adapters import Absent, check_engine, engines, kernels
from refengine.audit.adapters.engine import EngineAudit, Worker
from refengine.audit.adapters.interpreted import KernelsAudit
from refengine.audit.common import Progress
from refengine.audit.served.audit import SOURCE
from refengine.audit.served.endpoint import REQUESTS
from refengine.commands.tiny import write_tiny
from refengine.evidence.alpha import ALPHA
from refengine.report.finding import Finding, Recipe


def audit_engine(
    name: str,
    python: str,
    way: str = "",
    requests: int = REQUESTS,
    only: str = "",
    alpha: float = ALPHA,
    progress: Progress = lambda what, share: None,
) -> list[Finding]:
    """The claims about an engine under that Python, whatever way it speculates in, or those ways that begin so.

    requests  of each way, in the process and served; of kernels as many calls
    Raises BadInput on an unknown name. An engine that is absent is one finding, not tested.
    """
    check_engine(name)
    of_rows = kernels()
    arguments = {"name": name, "python": python, "way": way, "requests": requests, "only": only, "alpha": alpha}
    recipe = Recipe(function=f"{__name__}:audit_engine", arguments=arguments)
    if name in of_rows:
        adapter, entry = of_rows[name]
        try:
            return list(KernelsAudit(adapter, entry, python, recipe, requests, only, alpha, progress).run(way))
        except Absent as absent:
            return [_absent(name, entry.package, str(absent), recipe)]
    adapter, engine = engines()[name]
    try:
        with Worker(adapter, engine, python) as worker:
            worker.version  # noqa: B018 (raises Absent)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "tiny"
            write_tiny(engine.format, folder, python)
            audit = EngineAudit(adapter, engine, python, folder, recipe, requests, only, alpha, progress)
            return list(audit.run(way))
    except Absent as absent:
        return [_absent(name, engine.package, str(absent), recipe)]


def _absent(name: str, package: str, reason: str, recipe: Recipe) -> Finding:
    return Finding(
        id=f"audit.engine/{name}",
        subject=package,
        claim="Speculation changes nothing that a user is sent.",
        source=SOURCE,
        role="subject",
        verdict="not tested",
        reason=reason,
        method="none",
        recipe=recipe,
    )
