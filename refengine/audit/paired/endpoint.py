"""`audit endpoint`: an OpenAI-compatible server with speculation on, beside one of the same model with it off."""

from dataclasses import asdict
from typing import Any

from refengine.audit.common import Progress
from refengine.audit.paired.audit import compare
from refengine.audit.paired.comparison import Comparison, Settings
from refengine.audit.paired.completion import Failed
from refengine.audit.paired.openai_client import connected
from refengine.report.finding import Finding, Recipe

CONCURRENT_REQUESTS = 8


def audit_endpoint(
    on: str, off: str, model: str | None = None, progress: Progress = lambda what, share: None, **requested: Any
) -> list[Finding]:
    """The greedy and the sampling finding. Raises BadInput where a server refuses a request.

    on, off  base addresses, up to and including /v1
    requested  the fields of request.Settings
    """
    settings = Settings(**requested)
    arguments = {"on": on, "off": off, "model": model, **asdict(settings), "prompts": list(settings.prompts)}
    recipe = Recipe(function=f"{__name__}:audit_endpoint", arguments=arguments)
    comparison = Comparison("endpoint", on, off, settings, recipe)
    try:
        sides = (connected(on, model, settings.prompts[0]), connected(off, model, settings.prompts[0]))
    except Failed as error:
        return comparison.untested(str(error))
    return compare(comparison, sides, CONCURRENT_REQUESTS, progress)
