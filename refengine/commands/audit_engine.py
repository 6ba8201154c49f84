"""`refengine audit engine NAME`: a tiny model in its layout, its server where it has one, and the suite of claims."""

import tempfile
from pathlib import Path

from refengine.audit.adapters import Absent, engines
from refengine.audit.adapters.engine import EngineAudit, Worker
from refengine.audit.common import Progress
from refengine.audit.served.audit import SOURCE
from refengine.audit.served.endpoint import REQUESTS
from refengine.commands.tiny import write_tiny
from refengine.errors import BadInput
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

    requests  of each way, in the process and served
    Raises BadInput on an unknown name. An engine that is absent is one finding, not tested.
    """
    known = engines()
    if name not in known:
        raise BadInput(f"no engine is called {name!r}: one of {', '.join(known)}")
    adapter, engine = known[name]
    arguments = {"name": name, "python": python, "way": way, "requests": requests, "only": only, "alpha": alpha}
    recipe = Recipe(function=f"{__name__}:audit_engine", arguments=arguments)
    try:
        with Worker(adapter, engine, python) as worker:
            worker.version  # noqa: B018 (raises Absent)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "tiny"
            write_tiny(engine.format, folder, python)
            audit = EngineAudit(adapter, engine, python, folder, recipe, requests, only, alpha, progress)
            return list(audit.run(way))
    except Absent as absent:
        return [
            Finding(
                id=f"audit.engine/{name}",
                subject=engine.package,
                claim="Speculation changes nothing that a user is sent.",
                source=SOURCE,
                role="subject",
                verdict="not tested",
                reason=str(absent),
                method="none",
                recipe=recipe,
            )
        ]
