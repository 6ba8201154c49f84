"""Tokens that are looked for by their ids: those that end a text, and two between which a text is nearly its coins.

Within the tokens that a claim asks for a text seldom ends by itself: what goes wrong where it ends would not be seen.
No API says which token the end is: it is looked for among the ids that it has in the vocabularies in use, for a bias by
which plain texts end after some tokens. And where one of two tokens is always the likelier one, a text shows no coin.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

from refengine.audit.served.ask import Answer, Ask, Failed, Gone, Refused
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.options import FIRST_IDS, TOKENS, Options, Setting, alone, biased_to
from refengine.audit.served.claims.tilt import after, tokens_or_words

END_IDS = (*FIRST_IDS, 50256, 151643, 151645, 128001, 128009, 100257, 199999)  # GPT-2, Qwen, Llama 3, OpenAI's
BIASES = (2.0, 4.0, 8.0, 12.0)  # nats, by which an end may be less likely than what is said
PLACES, FEW = 4, 2  # prompts that are asked, of which so many end at least
HALVINGS = 3
MOST_ALONE = 3  # ends that are asked for one by one
SAMPLED, MOST_SEEN = 160, 3  # tokens of texts in which ends are looked for; ends that are taken from them
LEAST_WORDS = 2  # of a text that is of use
PAIRS = 10  # of ids that are drawn
LEAST_TOKENS = 24  # that every model is taken to have


def shown_tokens(answers: Iterable[Answer]) -> int:
    """So many tokens a model surely has: as many as were reported, and those up to the greatest id. Some servers, as
    mlx-lm's 0.32.2, write a bias on an id that they do not have into memory that belongs to something else."""
    said = [choice for answer in answers for choice in answer.choices]
    words = {word.strip() for one in said for row in (one.tokens or (), *(one.top or ())) for word in row}
    return max(LEAST_TOKENS, len(words), 1 + max((i for one in said for i in one.ids or ()), default=0))


def there(options: Options, vocabulary: int) -> bool:
    """Whether the model has every token that is asked for by its id."""
    return all(int(token) < vocabulary for token in options.get("logit_bias", ()))


def found_ends(bench: Bench, chat: bool) -> tuple[Options, list[Options]]:
    """The bias by which most prompts' texts end within TOKENS and not at once, {} where none does; and the same in
    chat, where other tokens may end a text too: of all ends together, then of each of several alone, as another may be
    tested by other code. Raises Gone."""
    ids = [i for i in dict.fromkeys((*END_IDS, *_seen(bench))) if i < bench.vocabulary]
    ends = [i for i in ids if _ends_at_once(_said(bench, 0, alone([i])))]
    of_chat = [i for i in ids if chat and (i in ends or _ends_at_once(_said(bench, 0, alone([i]), chat)))]
    together = ending_bias(bench, ends or of_chat, not ends)
    alone_in_chat = [(i, ending_bias(bench, [i], True)) for i in of_chat[:MOST_ALONE]] if len(of_chat) > 1 else []
    in_chat = [biased(of_chat, together), *(biased([i], bias) for i, bias in alone_in_chat)]
    return biased(ends, together), [found for found in in_chat if found]


def ending_bias(bench: Bench, ends: Sequence[int], chat: bool) -> float:
    """By which most of some texts end, and not at once: one of BIASES, or between two of them, of which the smaller
    ends too few texts and the larger all at once; 0.0 where none does. Raises Gone."""
    found: dict[float, int] = {0.0: 0}

    def all_stop(bias: float) -> bool:
        said = [_said(bench, k, biased(ends, bias), chat) for k in range(PLACES)]
        found[bias] = sum(_ends(answer) for answer in said)
        return all(answer and answer.choices[0].finish == "stop" for answer in said)

    high = next((bias for bias in BIASES if all_stop(bias)), 0.0) if ends else 0.0  # a larger one ends them sooner
    low = max((bias for bias in found if bias < high), default=0.0)
    for _ in range(HALVINGS):
        if not high or max(found.values()) > FEW:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if all_stop(middle) else (middle, high)
    best = max(found, key=lambda bias: found[bias])
    return best if found[best] >= FEW else 0.0


def biased(ids: Sequence[int], bias: float) -> Options:
    return {"logit_bias": dict.fromkeys(map(str, ids), bias)} if ids and bias else {}


def liveliest(bench: Bench, setting: Setting) -> list[Options]:
    """The biases to two tokens, and to more pairs of ids, those first between which the side without speculation is
    least decided; as they are where no token is reported. Raises Gone."""
    if not (bench.several and bench.logprobs):
        return list(setting.forms)
    drawn, ids = Random("two tokens"), range(min(FIRST_IDS.stop, bench.vocabulary - 2), bench.vocabulary)
    pairs = (biased_to(*drawn.sample(ids, 2)) for _ in range(PAIRS))
    forms = [form for form in (*setting.forms, *pairs) if there(form, bench.vocabulary)]
    more = {**bench.logprobs, **bench.several}

    def undecided(form: Options) -> float:
        said = _said(bench, 0, {**form, **more}, tokens=setting.tokens, heat=setting.temperature)
        return _undecided(said) if said else 0.0

    return sorted(forms, key=undecided, reverse=True)[: len(setting.forms)]


def _undecided(answer: Answer) -> float:
    """The chance that two draws differ after the same token, in the mean over the tokens of its choices."""
    seen = Counter(entry for choice in answer.choices for entry in after(1, tokens_or_words(choice)))
    whole = Counter(before for before, _ in seen.elements())
    return sum(n * (1 - n / whole[before]) for (before, _), n in seen.items()) / max(1, whole.total())


def _seen(bench: Bench) -> list[int]:
    """With which some sampled texts ended by themselves, where ids are reported."""
    if not bench.ids:
        return []
    said = _said(bench, 0, {**bench.ids, **bench.several}, tokens=SAMPLED, heat=1.0)
    ended = [choice.ids[-1] for choice in (said.choices if said else ()) if choice.finish == "stop" and choice.ids]
    return [i for i, _ in Counter(ended).most_common(MOST_SEEN)]


def _said(
    bench: Bench, k: int, options: Options, chat: bool = False, tokens: int = TOKENS, heat: float = 0.0
) -> Answer | None:
    """By the side without speculation; None where it refuses, as it does an id beyond its vocabulary."""
    try:
        return bench.without([Ask((bench.prompt(k),), tokens, heat, options, chat)])[0]
    except Gone:
        raise
    except (Refused, Failed):
        return None


def _ends_at_once(said: Answer | None) -> bool:
    return said is not None and said.choices[0].finish == "stop" and not said.text.strip()


def _ends(said: Answer | None) -> bool:
    return said is not None and said.choices[0].finish == "stop" and len(said.text.split()) >= LEAST_WORDS
