"""What both sides take: the ways to ask, and the options of a request (`sides.py` finds it out)."""

from dataclasses import dataclass

LONG = (320, 160)  # tokens of a long completion: the first that both sides take


@dataclass(frozen=True)
class Takes:
    """What both sides take.

    rows           answers report tokens with their log probabilities and with others beside them
    choices        the numbers of choices, largest first, that a request with `n` is answered with
    equal_prompts  the same of a list of equal prompts, with the most choices of each that `n` gives
    lists          a list of prompts
    ids            a prompt as the ids of its tokens
    together       several requests may be under way at once
    long           tokens of a long completion
    refused        the options that a side refuses
    """

    rows: bool = False
    seed: bool = False
    chat: bool = False
    stream: bool = False
    choices: tuple[int, ...] = ()
    equal_prompts: tuple[int, ...] = ()
    lists: bool = False
    ids: bool = False
    together: bool = False
    long: int = LONG[-1]
    refused: frozenset[str] = frozenset()

    def options(self, *names: str) -> bool:
        """Whether neither side refuses any of these."""
        return not self.refused & {*names}
