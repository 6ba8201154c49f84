"""What it means that drafts are kept too often or too seldom, and which classes of `refengine bugs` could do it."""

from dataclasses import dataclass

from refengine.evidence.naming import joined


@dataclass(frozen=True)
class Meaning:
    """A sentence, and the classes that show so."""

    sentence: str
    classes: tuple[str, ...]

    def diagnosis(self, observed: str) -> str:
        """Every class, and what was observed behind the last."""
        return joined([*self.classes[:-1], f"{self.classes[-1]}: {observed}"])


TOO_OFTEN = Meaning(
    "Drafts are kept that the rule refuses, so what comes out leans towards the drafter's law; the speed that this"
    " gains is not speculation's.",
    ("accepts always", "greedy proposal, soft q", "raw row as q"),
)
TOO_OFTEN_LATER = Meaning(
    "Once a draft is kept, the next is kept too easily: one coin decides several positions, or the target's row after"
    " a draft lacks what the draft changes (a penalty, a grammar).",
    ("positions share coins", "history misses drafts"),
)
TOO_SELDOM = Meaning(
    "Drafts are refused that the rule keeps. The law may be right and the speed is lost: the drafter reads or writes"
    " another position, feature or id than it was trained on; or drafts are judged by another row, or weighed against a"
    " q that they were not drawn from.",
    ("row slip", "draft positions off by one", "draft ids not mapped", "greedy proposal, soft q"),
)
TOO_SELDOM_LATER = Meaning(
    "The first draft is right and those after it are refused too often: what the drafter carries from step to step is"
    " wrong, or the rows along a block are.",
    ("steps not carried on", "draft cache has a hole", "history misses drafts"),
)


def meaning(too_often: bool, later: bool) -> Meaning:
    """later: whether the first position is without this."""
    if too_often:
        return TOO_OFTEN_LATER if later else TOO_OFTEN
    return TOO_SELDOM_LATER if later else TOO_SELDOM
