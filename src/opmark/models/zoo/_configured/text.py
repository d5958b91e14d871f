"""Networks of text and speech: one entry per family, its small network first; to add a network, add a line."""

from typing import Any

from opmark.models.zoo._configured.building import Configured, Models, layers


def _text(name: str, summary: str, network: str, models: Models, *, cached: bool = True, **common: Any) -> Configured:
    """A network of token sequences; a `cached` one must not return its keys and values."""
    common = {"use_cache": False, **common} if cached else common
    return Configured(name=name, summary=summary, network=network, inputs="tokens", models=models, common=common)


def _decoder(width: int, depth: int, heads: int, kv_heads: int, inner: int, **further: Any) -> dict[str, Any]:
    """Layers whose key heads are fewer than their query heads; 8000 tokens unless `further` says otherwise."""
    return {**layers(width, depth, heads, inner, vocab_size=8000), "num_key_value_heads": kv_heads, **further}


def _coupled(width: int, depth: int, heads: int, inner: int, vocabulary: int, **further: Any) -> dict[str, Any]:
    """An encoder and a decoder of the same shape."""
    sides = ("encoder", "decoder")
    shape = {"layers": depth, "attention_heads": heads, "ffn_dim": inner}
    both = {f"{side}_{name}": value for side in sides for name, value in shape.items()}
    return {"d_model": width, **both, "vocab_size": vocabulary, **further}


TEXT = (
    # One layer applied again and again; embeddings are narrower than layers.
    _text(
        "albert",
        "ALBERT (Lan et al., 2020).",
        "Albert",
        {
            "albert-mini": (64, layers(256, 3, 4, 1024, vocab_size=8000, embedding_size=64)),
            "albert-base": (
                128,
                {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 30_000},
            ),
        },
        cached=False,
    ),
    # Six and six post-norm layers of width 768 in the base size; the size is the length of both sequences.
    Configured(
        name="bart",
        summary="BART (Lewis et al., 2020), encoder and decoder.",
        network="Bart",
        inputs="sequences",
        models={
            "bart-mini": (32, _coupled(256, 2, 4, 1024, 8000)),
            "bart-base": (64, _coupled(768, 6, 12, 3072, 50_265)),
        },
        common={"use_cache": False},
    ),
    # Twelve layers of width 768 in the base size.
    _text(
        "bert",
        "BERT (Devlin et al., 2019), the encoder with its pooler.",
        "Bert",
        {"bert-tiny": (16, layers(64, 2, 2, 128, vocab_size=500)), "bert-base": (128, {"vocab_size": 30_522})},
    ),
    # Attention that adds content-to-position and position-to-content scores.
    _text(
        "deberta-v2",
        "DeBERTa-v3 (He et al., 2023), which transformers keeps under DeBERTa-v2.",
        "DebertaV2",
        {
            "deberta-mini": (64, layers(256, 3, 4, 1024, vocab_size=8000)),
            "deberta-v3-xsmall": (128, layers(384, 12, 6, 1536, vocab_size=128_100)),
        },
        cached=False,
        relative_attention=True,
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        max_relative_positions=-1,
        type_vocab_size=0,
    ),
    # Half of BERT's layers, no pooler.
    _text(
        "distilbert",
        "DistilBERT (Sanh et al., 2019).",
        "DistilBert",
        {
            "distilbert-mini": (64, {"dim": 256, "n_layers": 3, "n_heads": 4, "hidden_dim": 1024, "vocab_size": 8000}),
            "distilbert-base": (128, {"vocab_size": 30_522}),
        },
        cached=False,
    ),
    # Every query head shares one key head, and the gated perceptron is eight times as wide as the layer.
    _text(
        "gemma",
        "Gemma (Mesnard et al., 2024): a block at the width of the 2-billion model.",
        "Gemma",
        {
            "gemma-mini": (64, _decoder(256, 3, 4, 1, 2048, head_dim=128)),
            "gemma-block": (64, _decoder(2048, 1, 8, 1, 16_384, head_dim=256)),
        },
    ),
    # Twelve layers of width 768 in the smallest published size.
    _text(
        "gpt2",
        "GPT-2 (Radford et al., 2019), the stack without the language-model head.",
        "GPT2",
        {
            "gpt2-tiny": (16, {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 500}),
            "gpt2": (128, {"vocab_size": 50_257}),
        },
    ),
    # Two blocks with rotary positions, RMS normalisation and a gated perceptron. A full vocabulary would add half a
    # gigabyte of table, of which one call reads a few rows; the same holds for the other blocks.
    _text(
        "llama",
        "Llama (Touvron et al., 2023): blocks at the width of the 1-billion model, with grouped key and value heads.",
        "Llama",
        {
            "llama-tiny": (16, _decoder(64, 2, 4, 2, 128, vocab_size=500)),
            "llama-block": (64, _decoder(2048, 2, 32, 8, 8192)),
        },
    ),
    # Rotary positions, four query heads to a key head, attention that slides over 4096 tokens.
    _text(
        "mistral",
        "Mistral (Jiang et al., 2023): a block at the width of the 7-billion model.",
        "Mistral",
        {
            "mistral-mini": (64, _decoder(256, 3, 4, 2, 768)),
            "mistral-block": (64, _decoder(4096, 1, 32, 8, 14_336, vocab_size=2000)),
        },
    ),
    # Decoders with ReLU perceptrons.
    _text(
        "opt",
        "OPT (Zhang et al., 2022), the stack without the language-model head.",
        "OPT",
        {
            "opt-mini": (
                64,
                {
                    "hidden_size": 256,
                    "num_hidden_layers": 3,
                    "num_attention_heads": 4,
                    "ffn_dim": 1024,
                    "word_embed_proj_dim": 256,
                    "vocab_size": 8000,
                },
            ),
            "opt-125m": (128, {"vocab_size": 50_272}),
        },
    ),
    # Attention and perceptron read the same normalised tensor; half of every head is rotated.
    _text(
        "phi",
        "Phi-1.5 (Li et al., 2023): blocks at the width of the 1.3-billion model.",
        "Phi",
        {
            "phi-mini": (64, layers(256, 3, 4, 1024, vocab_size=8000)),
            "phi-block": (64, layers(2048, 2, 32, 8192, vocab_size=8000)),
        },
    ),
    # Rotary positions, biased query, key and value, seven query heads to a key head.
    _text(
        "qwen2",
        "Qwen2 (Yang et al., 2024): blocks at the width of the half-billion model.",
        "Qwen2",
        {
            "qwen2-mini": (64, _decoder(256, 3, 4, 2, 768)),
            "qwen2-block": (64, _decoder(896, 2, 14, 2, 4864)),
        },
    ),
    # Queries and keys are normalised per head, and heads together are wider than the layer.
    _text(
        "qwen3",
        "Qwen3 (Yang et al., 2025): blocks at the width of the 0.6-billion model.",
        "Qwen3",
        {
            "qwen3-mini": (64, _decoder(256, 3, 4, 2, 768, head_dim=96)),
            "qwen3-block": (64, _decoder(1024, 2, 16, 8, 3072, head_dim=128)),
        },
    ),
    # BERT whose positions are counted from the tokens that are not padding.
    _text(
        "roberta",
        "RoBERTa (Liu et al., 2019).",
        "Roberta",
        {
            "roberta-mini": (64, layers(256, 3, 4, 1024, vocab_size=8000)),
            "roberta-base": (128, {"vocab_size": 50_265}),
        },
        max_position_embeddings=514,
        type_vocab_size=1,
    ),
    # Relative position biases, RMS normalisation, unscaled attention; the size is the length of both sequences.
    Configured(
        name="t5",
        summary="T5 (Raffel et al., 2020), encoder and decoder.",
        network="T5",
        inputs="sequences",
        models={
            "t5-mini": (32, {"d_model": 256, "d_ff": 1024, "num_layers": 2, "num_heads": 4, "vocab_size": 8000}),
            "t5-small": (64, {"vocab_size": 32_128}),
        },
        common={"use_cache": False},
    ),
    # Two convolutions and an encoder over a spectrogram, a decoder over 32 tokens of text; the size is the number of
    # frames of the spectrogram.
    Configured(
        name="whisper",
        summary="Whisper (Radford et al., 2023), encoder and decoder.",
        network="Whisper",
        inputs="speech",
        models={
            "whisper-mini": (400, _coupled(192, 2, 3, 768, 8000, pad_token_id=0)),
            "whisper-tiny": (3000, _coupled(384, 4, 6, 1536, 51_865)),
        },
        common={"use_cache": False},
        sized="max_source_positions",
    ),
)
