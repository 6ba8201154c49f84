"""A challenge: fresh vectors from a seed that is committed to, and a transcript that can be checked by anyone.

Whoever challenges keeps the seed and hands out the questions with two commitments: the digest of the seed, and the
digest of the seed with the expected answers. When the answers are in, the seed is opened. From it anyone makes the
questions and the expected answers again, so nothing of the transcript has to be believed but the answers themselves;
docs/vectors.md says what that proves and what not.
"""

import hmac
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from refengine.commands.vectors_release import check_rules, digest_of, question
from refengine.errors import BadInput
from refengine.exact.block import Block
from refengine.exact.vectors import LOSSLESS, PARENTS, TABLES_PER_RULE, draw_tokens, dyadic_row, edges

FORMAT = "refengine challenge 1"
TRANSCRIPT = "refengine challenge transcript 1"
KEY = "REFENGINE_CHALLENGE_KEY"  # the environment variable with the key of the HMAC


def fresh_vectors(seed: str, rules: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Vectors in the form of the released ones, their rows and drafts drawn from `seed`."""
    for name in rules:
        card, rng = LOSSLESS[name], random.Random(f"refengine challenge/{seed}/{name}")
        parents = PARENTS[card.shape]
        for table in range(TABLES_PER_RULE):
            p = [dyadic_row(rng, zeros=table % 2) for _ in range(len(parents) + 1)]
            q = [dyadic_row(rng, zeros=table // 2 % 2) for _ in parents]
            q = [q[parents.index(parent)] for parent in parents]  # siblings share the row they are drawn from
            drafted = Block(draw_tokens(card, q, parents, rng), parents, tuple(q), (None,) * len(parents))
            yield from edges(name, table, card.rule, p, drafted)


def new(seed: str, rules: Sequence[str] = ()) -> dict[str, Any]:
    """The questions of a seed with both commitments; all lossless rules unless some are named."""
    check_seed(seed)
    check_rules(rules)
    rules = sorted(set(rules)) or list(LOSSLESS)
    given = list(fresh_vectors(seed, rules))
    answers = [vector["emitted"] for vector in given]
    return {
        "format": FORMAT,
        "rules": rules,
        "seed_digest": digest_of({"seed": seed}),
        "answers_digest": digest_of({"seed": seed, "answers": answers}),
        "vectors": [question(vector) for vector in given],
    }


def judged(challenge: Any, answers: Sequence[Any], seed: str) -> dict[str, Any]:
    """The transcript: challenge, opened seed, answers and verdict.

    Raises BadInput for another seed than was committed to, for a challenge that this seed does not make, and for
    more or fewer answers than questions.
    """
    if not isinstance(challenge, dict) or challenge.get("format") != FORMAT:
        raise BadInput(f"this is no challenge of the format {FORMAT!r}")
    check_seed(seed)
    if challenge.get("seed_digest") != digest_of({"seed": seed}):
        raise BadInput("the seed is not the one that the challenge is committed to")
    rules = challenge.get("rules")
    if not isinstance(rules, list) or not rules or challenge != new(seed, rules):
        raise BadInput("the challenge is not what its seed makes: it was edited, or made by another version")
    if len(answers) != len(challenge["vectors"]):
        raise BadInput(f"{len(answers)} answers to {len(challenge['vectors'])} questions")
    pairs = zip(fresh_vectors(seed, rules), answers, strict=True)
    wrong = [vector["id"] for vector, answer in pairs if not same(vector["emitted"], answer)]
    return {"format": TRANSCRIPT, "challenge": challenge, "seed": seed, "answers": list(answers), "wrong": wrong}


def check_seed(seed: str) -> None:
    try:
        seed.encode()
    except UnicodeEncodeError:
        raise BadInput("the seed is no UTF-8 text") from None
    if not seed:
        raise BadInput("the seed is empty, which anyone can guess: take 32 random bytes")


def same(expected: list[int], answer: Any) -> bool:
    """Equal as JSON texts: true is not 1, and neither is 1.0."""
    return json.dumps(expected) == json.dumps(answer)


def signed(transcript: dict[str, Any], key: str | None) -> dict[str, Any]:
    """The transcript with its digest, and with an HMAC-SHA-256 of the digest where there is a key."""
    digest = digest_of(transcript)
    return {"transcript": transcript, "digest": digest} | ({"hmac": mac(digest, key)} if key else {})


def mac(digest: str, key: str) -> str:
    return hmac.new(key.encode(), digest.encode(), "sha256").hexdigest()


def verified(document: Any, key: str | None, digest: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """The transcript made again, and what does not hold of the one that was given.

    digest  what was published when the transcript was made, where it was
    """
    try:
        told = document["transcript"]
        again = judged(told["challenge"], told["answers"], told["seed"])
        said = document["digest"]
    except (KeyError, TypeError) as error:
        raise BadInput(f"this is no transcript of a challenge: {error}") from None
    wrong = []
    if told != again:
        wrong.append("its verdict is not that of its answers")
    if said != digest_of(told):
        wrong.append("its digest is not that of its text")
    if digest is not None and digest != digest_of(told):
        wrong.append("its digest is not the one that was published")
    if key and not hmac.compare_digest(str(document.get("hmac", "")), mac(digest_of(told), key)):
        wrong.append("it is not signed with this key")
    return again, wrong
