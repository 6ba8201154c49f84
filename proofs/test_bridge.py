"""The theorems are about the rules that run: Coq, refengine.exact and refengine.engine give the same law, exactly."""

import pytest

from proofs import bridge
from proofs.gate.build import compiled
from proofs.instances import instances
from refengine.exact.block import chain
from refengine.exact.rules import RULES
from refengine.selfcheck.claims.chains import CHAINS, files
from refengine.selfcheck.claims.coq_bridge import (
    RECORD,
    audit_bridge,
    decisions,
    engine_law,
    engine_round,
    exact_law,
    exact_round,
    followed,
    parse_law,
    recorded,
    refuses_trees,
)
from refengine.selfcheck.claims.mutants_of_rules import CHECKS, run, sample, status, unedited_holds
from refengine.selfcheck.claims.mutants_of_rules import RECORD as LINKS
from refengine.source_tree import commit_seed

pytestmark = pytest.mark.text

CHAIN_RULES = [name for name, card in RULES.items() if card.shape == "chain"]
BY_CHAIN = {name: [i for i in recorded() if i["chain"] == name] for name in CHAINS}


@pytest.mark.parametrize("name", CHAINS)
def test_exact_is_what_coq_said(name: str) -> None:
    """Kills: any change of an inequality, a residual, an order or a bonus in one of the two texts."""
    assert len(BY_CHAIN[name]) >= 4
    for instance in BY_CHAIN[name]:
        assert exact_law(instance) == parse_law(instance["law"]), instance["name"]


@pytest.mark.parametrize("name", CHAINS)
def test_engine_is_what_coq_said(name: str) -> None:
    """Kills: the same in the batched text, where the exact one would be right; and a coin at another site."""
    for instance in BY_CHAIN[name]:
        assert engine_law(instance) == parse_law(instance["law"]), instance["name"]
        assert decisions(engine_round(instance)) == decisions(exact_round(instance)), instance["name"]


def test_the_record_is_of_these_definitions_and_instances() -> None:
    """Kills: laws of an older definition, or of other rows, on record: run `python -m proofs.bridge --write`."""
    assert RECORD.every_stale() == []
    assert [{k: v for k, v in i.items() if k != "law"} for i in recorded()] == list(instances())
    assert [finding.verdict for finding in audit_bridge()] == ["consistent"] * len(CHAINS)


@pytest.mark.coq
def test_coq_still_says_so() -> None:
    """Kills: a record that was edited. One instance per chain; `make prove` asks about all of them."""
    assert compiled("Bridge.vo") == ""
    few = [BY_CHAIN[name][1] for name in CHAINS]
    edited = few[0] | {"name": "edited", "law": few[1]["law"]}
    assert bridge.changed([*few, edited]) == ["edited"]


def test_chain_rules_refuse_trees() -> None:
    """Kills: a rule that judges a tree although its theorem is about chains."""
    assert all(refuses_trees(text, rule) for text in ("exact", "engine") for rule in CHAIN_RULES)


def test_laws_differ_between_rules_and_sum_to_one() -> None:
    """Kills: a parser that reads the same law for everything, and rows on which the rules cannot be told apart."""
    laws = {i["name"]: parse_law(i["law"]) for i in recorded()}
    assert {sum(law.values()) for law in laws.values()} == {1}
    assert len({str(laws[f"{rule}/2"]) for rule in ("leviathan", "agreement", "block")}) == 3
    assert laws["typical/27"] != laws["typical_inclusive/27"]


def test_a_path_that_spells_something_else_is_refused() -> None:
    """Kills: a rule that emits the right tokens and reports the wrong path, which would roll back the wrong cache."""
    block = chain((1, 0), (None, None), (None, None))
    assert followed(block, (1, 0, 2), (0, 1)) == (1, 0, 2)
    for tokens, path in (((1, 2), ()), ((1, 0, 2), (1, 0)), ((1, 0, 2), (0,)), ((0, 2), (0,)), ((0, 2), (1,))):
        with pytest.raises(ValueError, match="does not spell"):
            followed(block, tokens, path)


def test_every_chain_is_linked() -> None:
    """Kills: a rule that can be mistaken without anybody seeing it, and a record that is older than its rule."""
    make = "make records RECORDS=links"
    assert set(LINKS.entries()) == {module for name in CHAINS for module in files(name)}, make
    assert {name: status(name) for name in CHAINS if not status(name).startswith("linked")} == {}, make


def test_what_cannot_run_kills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills: mutants that all crash, as the check that they are held to is gone; a crash is as red as a difference."""
    monkeypatch.setitem(CHECKS, "exact", "refengine.selfcheck.claims.checks:gone")
    with pytest.raises(RuntimeError, match="checks:gone on unedited source: crashed"):
        unedited_holds.__wrapped__(at_once=1)


def test_mutants_on_record_fall_again() -> None:
    """Kills: a committed run that says linked where mutants live. A sample; the whole run takes ten minutes."""
    chosen = sample(6, commit_seed())
    assert len(chosen) == 6
    fates = run(chosen, at_once=1)
    assert [fate.mutant.key() for fate in fates if fate.outcome == "survived"] == []
