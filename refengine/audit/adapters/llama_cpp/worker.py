"""llama.cpp over the tiny pair. Runs under the engine's Python: `speak.py` says what is here."""

import json
from pathlib import Path
from typing import Any

DRAFTED = 3
CONTEXT = 256
WORD, CONTROL = 1, 3  # kinds of token
BYTES = [f"\\x{byte:02x}" for byte in range(256)]  # behind the words: the tokenizer hangs on text without a token
NEVER = -1e4  # the logit of such a token
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def convert(source: str, folder: str) -> None:
    """target.gguf and drafter.gguf, in float32. A word is a token with the blank before it.

    Qwen2 is Llama with biases: those of attention are zero, that of the output keeps single bytes from being drawn.
    """
    for part in ("target", "drafter"):
        _write(Path(source) / part, Path(folder) / f"{part}.gguf")


def _write(source: Path, file: Path) -> None:
    import gguf
    import numpy
    from safetensors.numpy import load_file

    config = json.loads((source / "config.json").read_text())
    vocabulary = json.loads((source / "tokenizer.json").read_text())["model"]["vocab"]
    words = sorted(vocabulary, key=vocabulary.get)
    writer = gguf.GGUFWriter(file, "qwen2")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(len(words) + len(BYTES))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("rwkv")  # the longest word that fits: what splitting at blanks is
    writer.add_token_list([*(word if word.startswith("<") else f" {word}" for word in words), *BYTES])
    writer.add_token_types([*(CONTROL if word.startswith("<") else WORD for word in words), *[WORD] * len(BYTES)])
    writer.add_unk_token_id(0)
    writer.add_eos_token_id(config["eos_token_id"])
    for name, tensor in load_file(source / "model.safetensors").items():
        if "embed_tokens" in name or "lm_head" in name:  # a byte is read as the unknown word
            tensor = numpy.concatenate([tensor, numpy.repeat(tensor[:1], len(BYTES), axis=0)])
        writer.add_tensor(_name(name) + ".weight", numpy.ascontiguousarray(tensor, dtype=numpy.float32))
        if "q_proj" in name or "k_proj" in name or "v_proj" in name:
            writer.add_tensor(_name(name) + ".bias", numpy.zeros(tensor.shape[0], dtype=numpy.float32))
    never = numpy.repeat(numpy.array([0, NEVER], dtype=numpy.float32), (len(words), len(BYTES)))
    writer.add_tensor("output.bias", never)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _name(name: str) -> str:
    name = name.removesuffix(".weight")
    if name.startswith("model.layers."):
        _, _, number, rest = name.split(".", 3)
        return f"blk.{number}.{NAMES[rest]}"
    return NAMES[name]


def opened(folder: str) -> Any:
    """A model for each way: a draft model belongs to a Llama for good."""
    import numpy
    from llama_cpp import Llama, LogitsProcessorList
    from llama_cpp.llama_speculative import LlamaDraftModel, LlamaPromptLookupDecoding

    def load(part: str, draft: Any = None) -> Any:
        file = str(Path(folder) / f"{part}.gguf")
        return Llama(file, n_ctx=CONTEXT, n_threads=1, n_threads_batch=1, verbose=False, draft_model=draft)

    class Greedy(LlamaDraftModel):
        """The drafter's own greedy continuation."""

        def __init__(self) -> None:
            self.drafter = load("drafter")

        def __call__(self, input_ids: Any, /, **_: Any) -> Any:
            steps = self.drafter.generate([int(t) for t in input_ids], temp=0.0, repeat_penalty=1.0)
            return numpy.array([token for token, _ in zip(steps, range(DRAFTED), strict=False)], dtype=numpy.intc)

    made: dict[str, Any] = {}

    def model(way: str) -> Any:
        if way not in made:
            drafts = {
                "": lambda: None,
                "draft model": Greedy,
                "prompt lookup": lambda: LlamaPromptLookupDecoding(max_ngram_size=2, num_pred_tokens=DRAFTED),
            }
            made[way] = load("target", drafts[way]())
        return made[way]

    def generate(
        way: str,
        prompt: list[int],
        tokens: int,
        temperature: float,
        seed: int,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        frequency_penalty: float = 0.0,
        presence_penalty: float = 0.0,
        logit_bias: dict[str, float] | None = None,
    ) -> list[int]:
        def biased(_: Any, scores: Any) -> Any:
            for token, value in (logit_bias or {}).items():
                scores[int(token)] += value
            return scores

        llama = model(way)
        llama.set_seed(seed)
        out: list[int] = []
        for token in llama.generate(
            prompt,
            temp=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repeat_penalty=repetition_penalty,
            frequency_penalty=frequency_penalty,
            presence_penalty=presence_penalty,
            logits_processor=LogitsProcessorList([biased]) if logit_bias else None,
        ):
            out.append(int(token))
            if token == llama.token_eos() or len(out) == tokens:
                break
        return out

    return generate
