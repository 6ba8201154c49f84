"""The claims in the report: each with its verdict, what it rests on, and the chain that ties it to running code."""

from collections.abc import Iterator

from refengine.errors import BadInput
from refengine.report.finding import Finding, Recipe
from refengine.selfcheck.claims import hypotheses
from refengine.selfcheck.claims.claims import Claim, load
from refengine.selfcheck.claims.mutants_of_rules import status


def audit_claims() -> Iterator[Finding]:
    """One finding; not tested where there is no source tree to hold the claims to."""
    try:
        claims, missing = load(), ""
    except BadInput as error:
        claims, missing = [], str(error)
    unlinked = [c.id for c in claims if any(word.startswith(("unlinked", "blind", "superfluous")) for word in words(c))]
    stale = next((word for claim in claims for word in words(claim) if word.startswith("stale")), "")
    yield Finding(
        id="claims",
        subject="proofs/claims",
        claim="Every claim has a verdict and evidence that exists, every claim about a rule is linked to its code, "
        "and no theorem assumes more than it needs.",
        source="proofs/CLAIMS.md",
        verdict="violated" if unlinked else "not tested" if missing or stale else "consistent",
        reason="" if unlinked else missing or stale,
        method="theorems, tests and chains looked up by name; links by the committed runs: every mutant of every rule "
        "against its chain, a sample of them against each claim's own tests; every hypothesis taken away",
        numbers={
            **{word: sum(c.verdict == word for c in claims) for word in ("consistent", "violated", "not tested")},
            "about a rule": sum(bool(c.chains()) for c in claims),
            "unlinked": len(unlinked),
            "hypotheses taken away and missed": sum(map(bool, hypotheses.fresh().values())),
        },
        witness={"unlinked": unlinked} if unlinked else None,
        recipe=Recipe(function=f"{__name__}:rerun"),
        tables={"claims": table(claims)},
    )


def rerun() -> list[Finding]:
    return list(audit_claims())


def words(claim: Claim) -> list[str]:
    """What is said of its chains, of its own tests and of the hypotheses of its theorems."""
    said = [*(status(chain) for chain in claim.chains()), claim.link(), *hypotheses.status(claim.coq).values()]
    return [word for word in said if word]


def table(claims: list[Claim]) -> dict[str, list[str]]:
    """What a reader looks a claim up for."""
    return {
        "claim": [c.id for c in claims],
        "statement": [c.statement for c in claims],
        "verdict": [c.verdict for c in claims],
        "evidence": [", ".join(c.coq + c.tests()) for c in claims],
        "chain": [", ".join(c.chains()) for c in claims],
        "link": ["; ".join(dict.fromkeys(word.split(":")[0] for word in words(c))) for c in claims],
    }
