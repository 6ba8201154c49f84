"""Our side of an audit of kernels: what is claimed of each way of verifying, by rows that we pass.

    law     the sequential audit of `refengine audit process`: the worker is a program that verifies our rows
    lanes   rows with one token decide what is emitted: batches of them, of any length and temperature that the kernel
            takes, are compared token by token
    coins   a token without mass is never emitted, whatever the coins: all of them at the ends of their grid
    tree    greedy verification of random trees, token by token

Bits of p and q are those that the kernel gets. What is not here: the softmax and the filters before it, and a GPU's
order of summation; the interpreter adds up as numpy does.
"""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from refengine.audit.adapters import TREE, Absent, Adapter, Kernels, speak
from refengine.audit.adapters.engine import Worker
from refengine.audit.adapters.kernel_inputs import GRID, Asked, along, as_case, batch, filtered, less, small, trees
from refengine.audit.common import CLAIM, SOURCE, Progress
from refengine.audit.kernel.audit import audited
from refengine.audit.kernel.request import MARK, Request
from refengine.audit.served.ask import Failed
from refengine.evidence.naming import ZERO_MASS
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

LAW_SECONDS = 600.0  # when the clock ends it, and the search for a smaller witness
BATCHES, TREES, ROWS = 150, 150, 20  # that are compared
VOCABULARIES = (7, 600, 5000)  # of the rows at the ends of the coins, the smallest first
COINS = {"0": 0.0, "1 - 2^-24": 1.0 - GRID}
MOST_POINTS = 64  # of the grid that are tried beside a coin that shows something
LANES_CLAIM = "Where the rows leave no choice every lane of a batch emits the only tokens it can."
COINS_CLAIM = "A token to which the target gives probability zero is never emitted."
TREE_CLAIM = "A greedy tree emits the target's tokens along its longest branch that agrees with them."


@dataclass(frozen=True)
class KernelsAudit:
    """The claims about kernels under one Python. calls: sampled of each way."""

    adapter: Adapter
    kernels: Kernels
    python: str
    recipe: Recipe
    calls: int
    only: str
    alpha: float
    progress: Progress

    def run(self, begins: str) -> Iterator[Finding]:
        """Of the ways whose names begin so. Raises Absent."""
        with Worker(self.adapter, self.kernels, self.python) as worker:
            for way, signature in self.kernels.ways.items():
                if way.startswith(begins):
                    yield from self._of_way(worker, way, signature)

    def _of_way(self, worker: Worker, way: str, signature: str) -> Iterator[Finding]:
        try:
            worker.ask(op="there", way=way)
        except Absent as absent:
            yield self._untested(worker, way, "there", CLAIM, str(absent).removesuffix(f": {self.adapter.install}"))
            return
        claims: dict[str, Callable[[Worker, str, str], Finding]] = {}
        if signature == TREE:
            claims["tree"] = self._trees
        else:
            claims["law"] = self._law
        if signature == "verify_batch":
            claims["lanes"] = self._lanes
        if way in self.kernels.coins:
            claims["coins"] = self._coins
        for name, claim in claims.items():
            if name.startswith(self.only):
                yield claim(worker, way, signature)

    def _law(self, worker: Worker, way: str, signature: str) -> Finding:
        program = [self.python, str(Path(speak.__file__)), str(self.adapter.worker), self.kernels.package, way]
        subject = MARK + shlex.join(program)
        request = Request(subject, signature, alpha=self.alpha, seconds=LAW_SECONDS, calls=self.calls)
        found = audited(request, lambda what, share: self.progress(f"{way}: {what}", share), small).finding
        named = self._named(worker, way, "law")
        return msgspec.structs.replace(found, replay="statistical", **named)

    def _lanes(self, worker: Worker, way: str, _: str) -> Finding:
        rng = np.random.default_rng(0)
        for done in range(BATCHES):
            self.progress(f"{way}: lanes", done / BATCHES)
            lanes = batch(rng, self.kernels.mixed)
            try:
                wrong = self._wrong(worker, way, lanes)
                while wrong and (fewer := next(filter(None, (self._wrong(worker, way, x) for x in less(wrong))), None)):
                    wrong = fewer
            except Failed as error:
                return self._untested(worker, way, "lanes", LANES_CLAIM, str(error))
            if wrong:
                return self._certain(worker, way, "lanes", LANES_CLAIM, {"lanes": wrong})
        method = f"equality on {BATCHES} batches of rows with one token"
        return self._held(worker, way, "lanes", LANES_CLAIM, method, {"batches": BATCHES})

    def _wrong(self, worker: Worker, way: str, lanes: list[Asked]) -> list[Asked]:
        """The lanes with what they emitted, where that is not what they had to; else nothing."""
        emitted = worker.ask(op="verify", way=way, case=as_case(lanes, seed=len(lanes)))["tokens"]
        shown = [{**lane, "emitted": tokens} for lane, tokens in zip(lanes, emitted, strict=True)]
        return shown if any(lane["emitted"] != lane["due"] for lane in shown) else []

    def _trees(self, worker: Worker, way: str, _: str) -> Finding:
        rng = np.random.default_rng(0)
        for done in range(TREES):
            self.progress(f"{way}: trees", done / TREES)
            case = trees(rng)
            try:
                emitted = worker.ask(op="verify", way=way, case=case)["tokens"]
            except Failed as error:
                return self._untested(worker, way, "tree", TREE_CLAIM, str(error))
            due = [along(*lane) for lane in zip(case["tokens"], case["parents"], case["best"], strict=True)]
            if emitted != due:
                return self._certain(worker, way, "tree", TREE_CLAIM, {**case, "emitted": emitted, "due": due})
        return self._held(worker, way, "tree", TREE_CLAIM, f"equality on {TREES} batches of trees", {"batches": TREES})

    def _coins(self, worker: Worker, way: str, _: str) -> Finding:
        for number in range(ROWS * len(VOCABULARIES)):
            self.progress(f"{way}: coins", number / (ROWS * len(VOCABULARIES)))
            vocabulary = VOCABULARIES[number // ROWS]
            case = filtered(number, vocabulary)
            try:
                for name, coin in COINS.items():
                    if massless := self._massless(worker, way, case, coin):
                        points = self._points(worker, way, case, coin)
                        witness = {"case": number, "vocabulary": vocabulary, "coins": name, **massless}
                        return self._without_mass(worker, way, witness, points)
            except Failed as error:
                return self._untested(worker, way, "coins", COINS_CLAIM, str(error))
        tried = ROWS * len(VOCABULARIES)
        method = f"{tried} batches of filtered rows, all coins at {' and at '.join(COINS)}"
        return self._held(worker, way, "coins", COINS_CLAIM, method, {"batches": tried})

    def _massless(self, worker: Worker, way: str, case: Asked, coin: float) -> dict[str, int]:
        """Where a token was emitted that has no mass, and which; else nothing."""
        asked = {name: case[name].tolist() for name in ("p", "q", "draft")} | {"seed": 0, "coin": coin}
        emitted = worker.ask(op="verify", way=way, case=asked)["tokens"]
        for lane, tokens in enumerate(emitted):
            for place, token in enumerate(tokens):
                if case["p"][lane, place, token] == 0:
                    return {"lane": lane, "place": place, "token": token}
        return {}

    def _points(self, worker: Worker, way: str, case: Asked, coin: float) -> int:
        """How many coins next to this one on their grid show it too, itself among them."""
        towards = 1.0 if coin == 0 else -1.0
        for point in range(1, MOST_POINTS):
            if not self._massless(worker, way, case, coin + towards * point * GRID):
                return point
        return MOST_POINTS

    def _without_mass(self, worker: Worker, way: str, witness: Asked, points: int) -> Finding:
        return self._finding(
            worker,
            way,
            "coins",
            COINS_CLAIM,
            verdict="violated",
            method="all coins at an end of their grid",
            numbers={"points of the grid that show it": points},
            witness=witness,
            magnitude=Magnitude(tv=Quantity(value=points * GRID, tolerance=GRID), exact=False, breaks_mask=True),
            diagnosis=f"{ZERO_MASS}: it is what is left when a coin lies beyond the sum of the row",
        )

    def _certain(self, worker: Worker, way: str, name: str, claim: str, witness: Asked) -> Finding:
        """What is wrong whatever the coins."""
        return self._finding(
            worker,
            way,
            name,
            claim,
            verdict="violated",
            method="equality, token by token",
            witness=witness,
            magnitude=Magnitude(tv=Quantity(value=1.0, tolerance=0.0), exact=True),
        )

    def _held(self, worker: Worker, way: str, name: str, claim: str, method: str, numbers: dict[str, Any]) -> Finding:
        return self._finding(worker, way, name, claim, verdict="consistent", method=method, numbers=numbers)

    def _untested(self, worker: Worker, way: str, name: str, claim: str, reason: str) -> Finding:
        return self._finding(worker, way, name, claim, verdict="not tested", reason=reason, method="none")

    def _finding(self, worker: Worker, way: str, name: str, claim: str, **more: Any) -> Finding:
        return Finding(claim=claim, source=SOURCE, role="subject", **self._named(worker, way, name), **more)

    def _named(self, worker: Worker, way: str, name: str) -> dict[str, Any]:
        kind = way.replace(", ", "/").replace(" ", "-")
        arguments = self.recipe.arguments | {"way": way, "only": name}
        return {
            "id": f"audit.engine/{self.adapter.name}/{kind}/{name}",
            "subject": f"{self.kernels.package} {worker.version}, {way}",
            "recipe": Recipe(function=self.recipe.function, arguments=arguments),
        }
