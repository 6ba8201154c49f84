"""DeepSeek-V3's modules: one, used again and again, or several."""

from refengine.selfcheck.drafters.laws.remembering import modules, recurrence
from refengine.selfcheck.drafters.planted_bugs import RECURRENT, TARGET_BUGS, own
from refengine.selfcheck.drafters.row import Row

PROMPT = (3, 5, 0, 5, 6, 0, 1, 6)
CHAIN_BUGS = own(
    "deepseek_mtp",
    (
        "draft-rows-stay-in-the-cache",
        "rejected rows stay",
        "hidden, _ = self._run(",
        "hidden, self.caches[depth] = self._run(",
    ),
    (
        "row-position-plus-one",
        "draft positions off by one",
        "torch.arange(old, old +",
        "(old > 0) + torch.arange(old, old +",
    ),
    ("stale-waiting-row", "feature of another position", "= hidden[-1:]", "= hidden[:1]"),
    ("one-cache-for-all", "draft slots misaddressed", "self.caches[depth], l", "self.caches[0], l"),
    (
        "a-module-does-not-catch-up",
        "draft cache has a hole",
        "torch.cat((self.waiting[depth], hidden)))",
        "hidden if depth else self.waiting[depth])",
    ),
)

ROWS = {
    "deepseek_mtp": Row(
        prompt=PROMPT,
        folder="deepseek/mtp",
        target="deepseek/mtp",
        options={"gamma": 2},
        remembered=recurrence,
        plants=RECURRENT,
    ),
    "deepseek_mtp2": Row(
        prompt=PROMPT,
        folder="deepseek/mtp2",
        target="deepseek/mtp2",
        remembered=modules,
        plants=(*TARGET_BUGS, *CHAIN_BUGS),
    ),
}
