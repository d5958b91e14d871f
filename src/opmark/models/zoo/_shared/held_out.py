"""Families, by the label tables know them under, whose networks nothing is ever learned from.

No suite samples shapes from them and no predictor is fitted on them: they are what an error is stated on. Each
design is on both sides: plain and branching image classifiers, mobile ones, vision transformers, encoders,
decoders, and encoders with a decoder. Changing the list makes results incomparable.
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
