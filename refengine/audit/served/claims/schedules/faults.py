"""What of one side's answers to a schedule is a fault: they differ and should not, or are alike and should not."""

from collections.abc import Sequence
from itertools import zip_longest

from refengine.audit.served.ask import Answer
from refengine.audit.served.claims.compare import logprobs_apart
from refengine.audit.served.claims.own import Pairs
from refengine.audit.served.claims.ties import parted, tied
from refengine.audit.served.grammar import wrong_json

MOST_WAYS = 8  # in which one token comes from one seed, with as many lengths of drafts


def first_and_last_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """And do not part at a tie."""
    return differing(answers[-1:], answers[0], nats)


def differing(answers: Sequence[Answer], first: Answer, nats: float) -> Pairs:
    """Those that part from the first, and not at a tie."""
    return [(said, first) for said in answers if parted(said, first) and not tied(said, first, nats)]


def reported_otherwise(answers: Sequence[Answer], nats: float) -> Pairs:
    """The last is reported with other log probabilities than the first."""
    first, last = answers[0], answers[-1]
    return [(last, first)] if (logprobs_apart(last.choices[0], first.choices[0]) or 0.0) > nats else []


def no_json(answers: Sequence[Answer], nats: float) -> Pairs:
    """A choice that ended by itself is none, or one that was cut begins none."""
    choices = (choice for answer in answers for choice in answer.choices)
    wrong = (Answer((choice,)) for choice in choices if wrong_json(choice.text, choice.finish == "stop"))
    return [(answer, answer) for answer in wrong]


def begin_in_many_ways(answers: Sequence[Answer], nats: float) -> Pairs:
    """All but the first, of one seed, by the first token that is not one in all of them: what a prompt gives may be
    drawn by other code. An engine that drafts less under load asks other coins, and has the same law: there a token has
    as many ways to come as drafts have lengths, and no more."""
    alone, *together = answers
    said = [answer.choices[0].tokens or answer.text.split() for answer in together]
    ways = (len(set(tokens)) for tokens in zip_longest(*said))
    return [(together[-1], alone)] if next((n for n in ways if n > 1), 1) > MOST_WAYS else []


def parameters_move(answers: Sequence[Answer], nats: float) -> Pairs:
    """The first or the last of those beside parameters, where beside none both are as alone: else company does it."""
    alone, *together = answers
    half = len(together) // 2
    beside_none, beside = together[:half], together[half:]
    if len(together) < 4 or len(together) % 2 or differing([beside_none[0], beside_none[-1]], alone, nats):
        return []
    return differing([beside[0], beside[-1]], alone, nats)


def in_company_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """The first or the last of those that were under way together, of which there may be but one."""
    alone, *others = answers
    return differing([others[0], others[-1]], alone, nats)


def last_ones_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """The last two of seven, or of fewer the last one: from the first."""
    return differing(answers[-max(1, (len(answers) - 1) // 3) :], answers[0], nats)


def any_differs(answers: Sequence[Answer], nats: float) -> Pairs:
    """Of what was heard to the end: from the first."""
    first, *others = [answer for answer in answers if answer.text or answer.choices[0].finish]
    return differing(others, first, nats)


def alike(answers: Sequence[Answer], nats: float) -> Pairs:
    """Two sampled answers that begin alike for half of their length; one of a few characters says nothing."""
    return [(a, b) for i, a in enumerate(answers) for b in answers[:i] if begin_alike(a.text, b.text)]


def share_a_choice(answers: Sequence[Answer], nats: float) -> Pairs:
    """A choice of one answer begins as one of the other does."""
    one, other = answers
    return [(one, other)] * any(begin_alike(a.text, b.text) for a in one.choices for b in other.choices)


def unseeded_alike(answers: Sequence[Answer], nats: float) -> Pairs:
    """Every second one."""
    return alike(answers[1::2], nats)


def filter_left(answers: Sequence[Answer], nats: float) -> Pairs:
    """Every second one begins alike, or has no token that is not one of the two likeliest of its row."""
    chosen = [choice for answer in answers[1::2] for choice in answer.choices]
    rows = [pair for c in chosen for pair in zip(c.logprobs or (), c.top or (), strict=False)]
    two = rows and all(lp is not None and sum(other > lp for other in row.values()) < 2 for lp, row in rows)
    return alike(answers[1::2], nats) + [(answers[1], answers[1])] * bool(two)


def filters_moved(answers: Sequence[Answer], nats: float) -> Pairs:
    """One that a filter leaves one token is not as at temperature 0."""
    return differing(answers[2:3], answers[0], nats) if len(answers) == 4 else []  # with fewer it is another's


def choices_alike(answers: Sequence[Answer], nats: float) -> Pairs:
    return alike(alone(answers[0]), nats)


def all_alike(answers: Sequence[Answer], nats: float) -> Pairs:
    """Every choice is the first one."""
    first, *others = alone(answers[0])
    return [(other, first) for other in others] if all(other.text == first.text for other in others) else []


def choices_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """Any other choice than the first, and not at a tie."""
    first, *others = alone(answers[0])
    return differing(others, first, nats)


def listed_differ(answers: Sequence[Answer], nats: float) -> Pairs:
    """Answers of a list, from what their prompts are answered without it; where some of these were left out, the
    first."""
    *singles, last = answers
    listed = alone(last)
    return one_by_one(listed, singles if len(singles) == len(listed) else singles[:1], nats)


def any_choice_differs(answers: Sequence[Answer], nats: float) -> Pairs:
    """A choice of the last from the same one of the first, and not at a tie; or there are more or fewer."""
    first, last = alone(answers[0]), alone(answers[-1])
    return one_by_one(last, first, nats) if len(first) == len(last) else [(answers[-1], answers[0])]


def one_by_one(said: Sequence[Answer], first: Sequence[Answer], nats: float) -> Pairs:
    """Each from the one in its place, and not at a tie."""
    return [pair for answer, one in zip(said, first, strict=False) for pair in differing([answer], one, nats)]


def alone(answer: Answer) -> list[Answer]:
    """Its choices, each as an answer."""
    return [Answer((choice,)) for choice in answer.choices]


def begin_alike(a: str, b: str) -> bool:
    half = max(len(a), len(b)) // 2
    return half >= 4 and a[:half] == b[:half]
