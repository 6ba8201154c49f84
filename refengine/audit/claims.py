"""The claims in the report: each with its verdict, what it rests on, and the chain that ties it to running code."""

from collections.abc import Iterator

from refengine.chains import CHAINS
from refengine.claims import Claim, load
from refengine.errors import BadInput
from refengine.links import status
from refengine.report.finding import Finding, Recipe


def audit_claims() -> Iterator[Finding]:
    """One finding; not tested where there is no source tree to hold the claims to."""
    try:
        claims, missing = load(), ""
    except BadInput as error:
        claims, missing = [], str(error)
    unlinked = [claim.id for claim in claims if any(status(chain).startswith("unlinked") for chain in claim.chains())]
    stale = next((status(chain) for chain in CHAINS if status(chain).startswith("stale")), "")
    yield Finding(
        id="claims",
        subject="proofs/claims",
        claim="Every claim has a verdict and evidence that exists, and every claim about a rule is linked to its code.",
        source="proofs/CLAIMS.md",
        verdict="violated" if unlinked else "not tested" if missing or stale else "consistent",
        reason="" if unlinked else missing or stale,
        method="theorems, tests and chains looked up by name; links by the committed run of every mutant of every rule",
        numbers={
            **{word: sum(c.verdict == word for c in claims) for word in ("consistent", "violated", "not tested")},
            "about a rule": sum(bool(c.chains()) for c in claims),
            "unlinked": len(unlinked),
        },
        witness={"unlinked": unlinked} if unlinked else None,
        recipe=Recipe(function="refengine.audit.claims:rerun"),
        tables={"claims": table(claims)},
    )


def rerun() -> list[Finding]:
    return list(audit_claims())


def linked(claim: Claim) -> bool:
    return all(status(chain).startswith("linked") for chain in claim.chains())


def table(claims: list[Claim]) -> dict[str, list[str]]:
    """What a reader looks a claim up for."""
    return {
        "claim": [c.id for c in claims],
        "statement": [c.statement for c in claims],
        "verdict": [c.verdict for c in claims],
        "evidence": [", ".join(c.coq + c.tests()) for c in claims],
        "chain": [", ".join(c.chains()) + ("" if linked(c) else " (not linked)") for c in claims],
    }
