"""What two documents promise of the programs that they print, and for what is not kept the edit that keeps it."""

from dataclasses import dataclass
from typing import Literal

DSPARK, MEDUSA = "Building DSpark", "Speculative Decoding v2"

Edit = tuple[str, str]  # a piece of the text that occurs once, and what stands there instead

CROP_AR = (
    "tcache.crop(start); dcache.crop(start)",
    "[cache.crop(start - cache.get_seq_length()) for cache in (tcache, dcache) if cache.get_seq_length() > start]",
)
CROP_DSPARK = ("\n        cache.crop(start)\n", "\n        cache.crop(min(0, start - cache.get_seq_length()))\n")


def _first(old: str) -> Edit:
    return old, old.replace(
        "out.logits[:, -1].argmax(-1, keepdim=True)", "torch.multinomial(to_probs(out.logits[:, -1], temperature), 1)"
    )


def _end(commit: str) -> Edit:
    """The output ends with its first stop token or at the limit, wherever in a round that is."""
    ends = "[i + 1 for i, x in enumerate(committed) if x in STOP] + [max_new]"
    return commit, f"{commit}\n        committed = committed[:min({ends})]\n        if committed[-1] in STOP: break"


@dataclass(frozen=True)
class Promise:
    """What is said of a program.

    program    the function or class, as printed
    name       what the finding is called, below the program's
    file       of `fixtures/subjects/printed`
    source     the document, and the lines of its text with the program
    claim      what must hold
    given      edits without which the program does not get as far as this promise
    mend       edits that keep a broken promise
    missing    what would keep it where no edit of some lines does
    diagnosis  the class of the defect, and what is wrong; `wrong` alone where it is of no class
    """

    program: str
    name: str
    file: Literal["dspark", "medusa"]
    source: str
    claim: str
    given: tuple[Edit, ...] = ()
    mend: tuple[Edit, ...] = ()
    missing: str = ""
    diagnosis: str = ""
    wrong: str = ""

    @property
    def id(self) -> str:
        return f"{self.program}/{self.name}"


def _loop(program: str, lines: str, crop: Edit, first: str, commit: str) -> tuple[Promise, ...]:
    """What is promised of both loops."""
    source = f"{DSPARK}, lines {lines}"
    return (
        Promise(
            program,
            "runs",
            "dspark",
            source,
            "The loop runs on the installed transformers.",
            mend=(crop,),
            wrong="crop takes how many rows to remove",
        ),
        Promise(
            program,
            "greedy",
            "dspark",
            source,
            "At temperature 0 the loop reproduces plain greedy decoding token for token, its end included.",
            given=(crop,),
            mend=(_end(commit),),
            diagnosis="stop inside a block missed: only the bonus is compared with the stop tokens, and the limit is "
            "looked at between rounds",
        ),
        Promise(
            program,
            "first-token",
            "dspark",
            source,
            "The first token has the law of the target at the temperature that the loop is given.",
            given=(crop,),
            mend=(_first(first),),
            diagnosis="greedy at temperature: the target's argmax where a token of its law was due",
        ),
    )


PROMISES = (
    Promise(
        "greedy_ar",
        "tokens",
        "dspark",
        f"{DSPARK}, lines 78-100",
        "The loop that the others are measured by is plain greedy decoding, its end included.",
        mend=(("while len(toks) < max_new:", "while len(toks) < max_new and toks[-1] not in STOP:"),),
        diagnosis="goes on after stop: the first token is not compared with the stop tokens",
    ),
    Promise(
        "verify",
        "law",
        "dspark",
        f"{DSPARK}, lines 133-151",
        "The emitted tokens have the target's law, for q that the drafts were drawn from.",
    ),
    Promise(
        "verify",
        "rare-drafts",
        "dspark",
        f"{DSPARK}, lines 133-151",
        "A draft to which the target gives at least the drafter's probability is accepted.",
        mend=(("float(draft_probs[k, xk].clamp_min(1e-8))", "float(draft_probs[k, xk])"),),
        diagnosis="epsilon: q is raised to 1e-8 in the ratio, and not in what is left to draw from",
    ),
    Promise(
        "to_probs",
        "small-temperatures",
        "dspark",
        f"{DSPARK}, lines 126-132",
        "The row of a positive temperature is softmax(logits / temperature).",
        mend=(("    if temperature < 1e-5:\n", "    if temperature == 0:\n"),),
        diagnosis="greedy at temperature: one of two equal logits gets all",
    ),
    *_loop(
        "spec_decode_ar",
        "164-201",
        CROP_AR,
        "anchor = out.logits[:, -1].argmax(-1, keepdim=True) # first committed token comes from the TARGET",
        "committed += d_tokens[:n_acc] + [bonus]",
    ),
    Promise(
        "spec_decode_ar",
        "draft-cache",
        "dspark",
        f"{DSPARK}, lines 164-201",
        "Before every draft the drafter's cache holds the text up to the token that it is given.",
        given=(CROP_AR,),
        mend=(
            (
                "        verify_ids = torch.tensor([[int(anchor)] + d_tokens], device=DEVICE)",
                "        draft(input_ids=cur, position_ids=torch.tensor([[cpos]]), past_key_values=dcache)\n"
                "        verify_ids = torch.tensor([[int(anchor)] + d_tokens], device=DEVICE)",
            ),
        ),
        diagnosis="draft cache has a hole: the last draft of a block that is kept whole is never run by the drafter",
    ),
    *_loop(
        "spec_decode_dspark",
        "421-464",
        CROP_DSPARK,
        "anchor = out.logits[:, -1].argmax(-1, keepdim=True)\n    ctx = ",
        "committed += [int(t) for t in tokens[0, :n_acc]] + [bonus]",
    ),
    Promise(
        "DSparkDraft",
        "network",
        "dspark",
        f"{DSPARK}, lines 244-335",
        "On a checkpoint in the released layout it drafts what the released code drafts.",
    ),
    Promise(
        "LookaheadCache",
        "drafts",
        "medusa",
        f"{MEDUSA}, lines 144-170",
        "After every text it drafts the last observed follower of the last two tokens, and goes on from there.",
    ),
    Promise(
        "simple_medusa_step",
        "tokens",
        "medusa",
        f"{MEDUSA}, lines 196-213",
        "After any prompt, one sequence at a time, the step's tokens are those of plain greedy decoding.",
    ),
    Promise(
        "simple_medusa_step",
        "passes",
        "medusa",
        f"{MEDUSA}, lines 196-213",
        "A step whose draft is accepted emits more tokens than it makes target passes.",
        mend=(
            ("model(t1, kv_cache=kv_cache)", "model(torch.cat([t1, t2_draft], dim=-1), kv_cache=kv_cache)"),
            (
                "t2_target = model.lm_head(verify_out.last_hidden_state[:, -1:, :]).argmax(dim=-1)",
                "t2_target, t3 = model.lm_head(verify_out.last_hidden_state).argmax(dim=-1).split(1, dim=-1)",
            ),
            ("torch.cat([t1, t2_draft], dim=-1)  # Accept both", "torch.cat([t1, t2_draft, t3], dim=-1)"),
        ),
        wrong="the draft is not run in the pass that judges it, so that pass has no token after it",
    ),
    Promise(
        "simple_medusa_step",
        "cache",
        "medusa",
        f"{MEDUSA}, lines 196-213",
        "Given the last token that it emitted and its cache, the next step goes on as greedy decoding does.",
        mend=(("        return t1  # Accept only t1", "        kv_cache.crop(-1)\n        return t1"),),
        wrong="after a rejection the last emitted token is in the cache already, and is run twice",
    ),
    Promise(
        "simple_medusa_step",
        "batch",
        "medusa",
        f"{MEDUSA}, lines 196-213",
        "What is accepted of one sequence of a batch does not depend on the others.",
        mend=(
            ("if (t2_draft == t2_target).all():", "if (t2_draft == t2_target).any():"),
            ("t2_draft], dim=-1)", "torch.where(t2_draft == t2_target, t2_draft, -1)], dim=-1)"),
        ),
        wrong="one acceptance decides for the whole batch",
    ),
    Promise(
        "MedusaModel",
        "runs",
        "medusa",
        f"{MEDUSA}, lines 33-58",
        "It runs on a causal language model of transformers, and its base logits are that model's.",
        mend=(
            ("outputs = self.base_model(input_ids, **kwargs)", "outputs = self.base_model.model(input_ids, **kwargs)"),
        ),
        wrong="the output of a causal model has no last_hidden_state, and the model within it has no head",
    ),
    Promise(
        "medusa_generate_step",
        "text",
        "medusa",
        f"{MEDUSA}, lines 68-92",
        "The pass over the tree gives the target's rows after the text and the nodes.",
        mend=(("tree_attention_mask=...)", "tree_attention_mask=..., kv_cache=kv_cache)"),),
        wrong="the tree's pass is not handed the cache, so its rows are those of the tree without the text",
    ),
    Promise(
        "MedusaHead",
        "network",
        "medusa",
        f"{MEDUSA}, lines 19-31",
        "With the tensors of a head in the released layout it computes that head's logits.",
        mend=(("self.act(self.linear1(hidden_states))", "hidden_states + self.act(self.linear1(hidden_states))"),),
        wrong="the released head has a residual: x + SiLU(W x + b), then a map without bias",
    ),
    Promise(
        "EAGLEDrafter",
        "network",
        "medusa",
        f"{MEDUSA}, lines 109-120",
        "With the tensors of a drafter in the released layout it predicts that drafter's next feature.",
        missing="the decoder layer after the linear one and its keys and values; the columns for [embedding; hidden]",
        wrong="the released drafter has a decoder layer behind the linear one",
    ),
)
