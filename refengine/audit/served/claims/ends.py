"""Where texts end by themselves: a bias on the end of a text, by which plain texts end after some tokens.

Within the tokens that a claim asks for a text seldom ends by itself: what goes wrong where it ends would not be seen.
No API says which token the end is: it is looked for among the ids that it has in the vocabularies in use.
"""

from collections.abc import Iterable

from refengine.audit.served.ask import Answer, Ask, Failed, Gone, Refused
from refengine.audit.served.bench import Bench
from refengine.audit.served.claims.options import FIRST_IDS, TOKENS, Options, alone

END_IDS = (*FIRST_IDS, 50256, 151643, 151645, 128001, 128009, 100257, 199999)  # GPT-2, Qwen, Llama 3, OpenAI's
BIASES = (4.0, 8.0, 12.0)  # nats, by which an end may be less likely than what is said
PLACES = 4  # prompts that are asked
LEAST_WORDS = 2  # of a text that is of use
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


def found_end(bench: Bench) -> Options:
    """The bias by which most prompts' texts end within TOKENS and not at once; {} where none does. Raises Gone."""
    ids = [i for i in END_IDS if i < bench.vocabulary]
    token = next((i for i in ids if _ends_at_once(_said(bench, 0, alone([i])))), None)
    if token is None:
        return {}
    found: dict[float, int] = {}
    for bias in BIASES:
        said = [_said(bench, k, {"logit_bias": {str(token): bias}}) for k in range(PLACES)]
        found[bias] = sum(_ends(answer) for answer in said)
    best = max(found, key=lambda bias: found[bias])
    return {"logit_bias": {str(token): best}} if found[best] > 1 else {}


def _said(bench: Bench, k: int, options: Options) -> Answer | None:
    """By the side without speculation; None where it refuses, as it does an id beyond its vocabulary."""
    try:
        return bench.without([Ask((bench.prompt(k),), TOKENS, options=options)])[0]
    except Gone:
        raise
    except (Refused, Failed):
        return None


def _ends_at_once(said: Answer | None) -> bool:
    return said is not None and said.choices[0].finish == "stop" and not said.text.strip()


def _ends(said: Answer | None) -> bool:
    return said is not None and said.choices[0].finish == "stop" and len(said.text.split()) >= LEAST_WORDS
