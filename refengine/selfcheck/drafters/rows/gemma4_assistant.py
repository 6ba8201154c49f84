"""The Gemma 4 assistant."""

from refengine.selfcheck.drafters.planted_bugs import TARGET_BUGS, own
from refengine.selfcheck.drafters.row import Row

ROWS = {
    "gemma4_assistant": Row(
        prompt=(5, 4, 0, 4, 0, 6, 3, 2),  # longer than the sliding window
        folder="gemma4/assistant",
        target="gemma4/target",
        options={"gamma": 2},
        plants=(
            *TARGET_BUGS,
            *own(
                "gemma4_assistant",
                ("rejected-keys-stay", "rejected rows stay", "if self.stale_keys:", "if True:"),
                (
                    "hidden-state-of-the-anchor",
                    "feature of another position",
                    "kept.taps[self.taps[0]][-1:]",
                    "kept.taps[self.taps[0]][:1]",
                ),
                (
                    "stale-hidden-state",
                    "feature of another position",
                    "self.hidden = kept.taps[self.taps[0]][-1:]",
                    "pass",
                ),
                (
                    "position-moves-on",
                    "draft positions off by one",
                    "position, keys)\n",
                    "position + len(chain.path), keys)\n",
                ),
                ("position-plus-one", "draft positions off by one", "tensor([length - 1]", "tensor([length]"),
                ("window-of-one-key-less", "window not enforced", "[-(window + 1) :]", "[-window:]"),
                ("own-state-not-carried", "steps not carried on", "hidden, logits = step", "_, logits = step"),
            ),
        ),
    )
}
