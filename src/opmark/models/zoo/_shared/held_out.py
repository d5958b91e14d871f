"""The held-out families, by their label in tables: nothing is ever learned from their networks.

No suite samples shapes from them, no predictor is fitted on them, and errors are stated on them. Each design is on
both sides: plain, branching and mobile image classifiers, vision transformers, encoders, decoders, and encoders with a
decoder. A change of the list makes results incomparable.
"""

HELD_OUT = frozenset(
    {
        "albert",
        "densenet",
        "efficientnet",
        "encoder",
        "gpt2",
        "inception",
        "levit",
        "qwen3",
        "resnet",
        "segformer",
        "squeezenet",
        "t5",
    }
)
