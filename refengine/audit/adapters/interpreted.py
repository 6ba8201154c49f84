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
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from refengine.audit.adapters import TREE, Absent, Adapter, Kernels, speak
from refengine.audit.adapters.engine import Worker
from refengine.audit.common import CLAIM, SOURCE, Progress
from refengine.audit.inputs.case import Case
from refengine.audit.inputs.hostile import cases
from refengine.audit.kernel.audit import audited
from refengine.audit.kernel.request import MARK, Request
from refengine.audit.served.ask import Failed
from refengine.evidence.naming import ZERO_MASS
from refengine.report.finding import Finding, Magnitude, Quantity, Recipe

LAW_SECONDS = 600.0  # when the clock ends it, and the search for a smaller witness
MOST_IDS, MOST_ROWS = 64, 24  # of an input that is sampled: each row of a lane is a program of the interpreter
BATCHES, TREES, ROWS = 150, 150, 20  # that are compared
VOCABULARIES = (7, 600, 5000)  # of the rows at the ends of the coins, the smallest first
GRID = 2.0**-24  # of torch.rand in float32
COINS = {"0": 0.0, "1 - 2^-24": 1.0 - GRID}
MOST_POINTS = 64  # of the grid that are tried beside a coin that shows something
LANES_CLAIM = "Where the rows leave no choice every lane of a batch emits the only tokens it can."
COINS_CLAIM = "A token to which the target gives probability zero is never emitted."
TREE_CLAIM = "A greedy tree emits the target's tokens along its longest branch that agrees with them."
Asked: TypeAlias = dict[str, Any]


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
                while wrong and (fewer := next(filter(lambda some: self._wrong(worker, way, some), _less(lanes)), None)):
                    lanes, wrong = fewer, self._wrong(worker, way, fewer)
            except Failed as error:
                return self._untested(worker, way, "lanes", LANES_CLAIM, str(error))
            if wrong:
                return self._certain(worker, way, "lanes", LANES_CLAIM, wrong)
        method = f"equality on {BATCHES} batches of rows with one token"
        return self._held(worker, way, "lanes", LANES_CLAIM, method, {"batches": BATCHES})

    def _wrong(self, worker: Worker, way: str, lanes: list[Asked]) -> Asked:
        """The lanes with what they emitted, where that is not what they had to; else nothing."""
        emitted = worker.ask(op="verify", way=way, case=as_case(lanes, seed=len(lanes)))["tokens"]
        due = [lane["due"] for lane in lanes]
        return {"lanes": lanes, "emitted": emitted} if emitted != due else {}

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
            case = filtered(number, VOCABULARIES[number // ROWS])
            try:
                for name, coin in COINS.items():
                    if massless := self._massless(worker, way, case, coin):
                        points = self._points(worker, way, case, coin)
                        witness = {"case": number, "vocabulary": VOCABULARIES[number // ROWS], "coins": name, **massless}
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


def small() -> list[Case]:
    """The inputs that an interpreter gets through in less than a second."""
    return [case for case in cases() if case.width <= MOST_IDS and case.lanes * (case.gamma + 1) <= MOST_ROWS]


def batch(rng: np.random.Generator, mixed: bool) -> list[Asked]:
    """1 to 5 lanes of at most 4 drafts over one vocabulary, with what each has to emit. A lane is drawn from rows with
    one token, or, in a mixed batch, at temperature 0 from any; then lanes have drafts of their own number, 0 too."""
    gamma, lanes, vocabulary = int(rng.integers(1, 5)), int(rng.integers(1, 6)), int(rng.choice([2, 5, 33]))
    made = []
    for _ in range(lanes):
        greedy = mixed and rng.random() < 0.5
        count = int(rng.integers(0, gamma + 1)) if mixed and made else gamma  # the first has all of them
        rows = rng.dirichlet(np.ones(vocabulary), 2 * gamma + 1).astype(np.float32)
        p, q = rows[: gamma + 1], rows[gamma + 1 :]
        best = p.argmax(-1)
        if not greedy:
            p[: count + 1] = np.eye(vocabulary, dtype=np.float32)[best[: count + 1]]
        draft = best[:gamma].copy()
        kept = int(rng.integers(0, count + 1))
        draft[kept:] = (draft[kept:] + 1) % vocabulary
        shown = {"p": p.tolist(), "q": q.tolist(), "draft": draft.tolist(), "count": count, "greedy": greedy}
        made.append(shown | {"due": best[: kept + 1].tolist()})
    return [made[i] for i in rng.permutation(lanes)]


def as_case(lanes: list[Asked], seed: int) -> Asked:
    """What a worker's `verify` is asked with."""
    together = {name: [lane[name] for lane in lanes] for name in ("p", "q", "draft", "greedy")}
    return {**together, "counts": [lane["count"] for lane in lanes], "seed": seed}


def _less(lanes: list[Asked]) -> Iterator[list[Asked]]:
    """The batch without one of its lanes; one with drafts stays."""
    for i in range(len(lanes)):
        rest = lanes[:i] + lanes[i + 1 :]
        if any(lane["count"] for lane in rest):
            yield rest


def trees(rng: np.random.Generator) -> Asked:
    """Trees of one size, whose root is node 0, with the target's token after each node, one in reach more often than
    not."""
    lanes, nodes, vocabulary = int(rng.integers(1, 5)), int(rng.integers(2, 12)), 12
    parents = [[-1, *(int(rng.integers(0, node)) for node in range(1, nodes))] for _ in range(lanes)]
    tokens, best = [], []
    for lane in parents:
        names = [0] * nodes
        follows = rng.integers(vocabulary, size=nodes).tolist()
        for parent in range(nodes):
            children = [node for node in range(1, nodes) if lane[node] == parent]
            for node, name in zip(children, rng.permutation(vocabulary).tolist(), strict=False):
                names[node] = name
            if children and rng.random() < 0.8:
                follows[parent] = names[int(rng.choice(children))]
        tokens.append(names)
        best.append(follows)
    return {"tokens": tokens, "parents": parents, "best": best}


def along(tokens: list[int], parents: list[int], best: list[int]) -> list[int]:
    """What a greedy tree emits."""
    node, emitted = 0, []
    while True:
        emitted.append(best[node])
        agrees = [child for child, parent in enumerate(parents) if parent == node and tokens[child] == best[node]]
        if not agrees:
            return emitted
        (node,) = agrees


def filtered(number: int, vocabulary: int) -> Asked:
    """Rows as a top-k filter leaves them, the last id without mass, and drafts from q."""
    rng = np.random.default_rng(number)
    lanes, gamma = 8, 2
    p, q = (_top(rng, (lanes, gamma + 1 - side, vocabulary)) for side in (0, 1))
    cumulative = q.cumsum(-1)
    draft = (cumulative < rng.random((lanes, gamma, 1)) * cumulative[..., -1:]).sum(-1).clip(max=vocabulary - 1)
    return {"p": p, "q": q, "draft": draft}


def _top(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    rows = rng.gamma(0.3, size=shape) + 1e-6
    rows[..., -1] = 0.0
    rows[rows < np.quantile(rows, 0.5, axis=-1, keepdims=True)] = 0.0
    return np.asarray(rows / rows.sum(-1, keepdims=True), dtype=np.float32)
