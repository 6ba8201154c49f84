"""`audit endpoint`: an OpenAI-compatible server with speculation on, beside one of the same model with it off."""

from dataclasses import asdict
from typing import Any

from refengine.audit.common import Progress
from refengine.audit.paired.audit import beside
from refengine.audit.paired.completion import Failed
from refengine.audit.paired.openai_client import connected
from refengine.audit.paired.request import Asked, Request
from refengine.report.finding import Finding, Recipe

AT_ONCE = 8  # requests under way


def audit_endpoint(
    on: str, off: str, model: str | None = None, progress: Progress = lambda what, share: None, **asked: Any
) -> list[Finding]:
    """The greedy and the sampling finding. Raises BadInput where a server refuses what is asked.

    on, off  base addresses, up to and including /v1
    asked    the fields of asked.Asked
    """
    ask = Asked(**asked)
    arguments = {"on": on, "off": off, "model": model, **asdict(ask), "prompts": list(ask.prompts)}
    recipe = Recipe(function=f"{__name__}:audit_endpoint", arguments=arguments)
    request = Request("endpoint", on, off, ask, recipe)
    try:
        sides = (connected(on, model, ask.prompts[0]), connected(off, model, ask.prompts[0]))
    except Failed as error:
        return request.untested(str(error))
    return beside(request, sides, AT_ONCE, progress)
