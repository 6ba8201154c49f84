"""Part A5: seeds, generators and addresses of coins."""

from refengine.source_edits.edit import Bug, Edit

COINS, CHANCE = "refengine.engine.coins", "refengine.exact.chance"
PLACE = 'return start + depth if kind == "emit" else start * DEPTHS + depth'

BUGS = (
    Bug(
        id="requests-share-a-stream",
        title="parallel requests draw from one stream, whatever their own identity",
        source="vllm-project/vllm #9441",
        part="A5",
        law_class="requests share coins",
        edits=(
            Edit(COINS, "philox4x32((self.requests, words[0]", "philox4x32((torch.zeros_like(self.requests), words[0]"),
        ),
        check="pytest:properties/exact_and_engine/test_coins.py",
    ),
    Bug(
        id="seed-ignored",
        title="the seed of a request is ignored",
        source="vllm-project/vllm #6038",
        part="A5",
        law_class="seed ignored",
        edits=(Edit(COINS, "(self.seed & MASK, self.seed >> 32))", "(0, 0))"),),
        check="pytest:properties/exact_and_engine/test_coins.py",
    ),
    Bug(
        id="generator-advanced-by-nothing",
        title="a request that drafted nothing still advances its generator by a draw",
        source="vllm-project/vllm-ascend #13608",
        part="A5",
        law_class="generator advanced by nothing",
        edits=(
            Edit(
                CHANCE,
                "return accept_below(Fraction(self.generator.getrandbits(ACCEPT_BITS)",
                "self.generator.getrandbits(ACCEPT_BITS)\n"
                "        return accept_below(Fraction(self.generator.getrandbits(ACCEPT_BITS)",
            ),
        ),
        check="pytest:properties/exact_and_engine/test_exact_chance.py",
    ),
    Bug(
        id="draft-and-verifier-share-seed",
        title="draft sampler and verifier are seeded alike, so a draft's coin also judges it",
        source="ggml-org/llama.cpp PR #27694 (review)",
        part="A5",
        law_class="draft and verifier share coins",
        edits=(Edit(COINS, '"accept": 1,', '"accept": 0,'),),
        check="pytest:properties/exact_and_engine/test_coins.py",
    ),
    Bug(
        id="reset-every-round",
        title="the sampler is reset in every round, so that each round draws the same numbers",
        source="ggml-org/llama.cpp PR #27694 (review)",
        part="A5",
        law_class="rounds share coins",
        edits=(Edit(CHANCE, PLACE, "return depth"),),
        check="loops:coins",
    ),
    Bug(
        id="redrafted-position-keeps-coins",
        title="a position drafted again after a rejection meets the coins that block verification has looked at",
        source="this project: coins addressed by absolute position alone, fixed before the first release",
        part="A5",
        law_class="rounds share coins",
        edits=(Edit(CHANCE, PLACE, "return start + depth"),),
        check="loops:coins",
    ),
)
