"""Networks of images: one entry per family, its small network first; to add a network, add a line."""

from typing import Any

from opmark.models.zoo._configured.building import Configured, Models, layers


def _image(
    name: str,
    summary: str,
    network: str,
    models: Models,
    *,
    sized: bool = True,
    head: str = "Model",
    **common: Any,
) -> Configured:
    """A network of square images; a `sized` one is configured with their side."""
    return Configured(
        name=name,
        summary=summary,
        network=network,
        inputs="images",
        models=models,
        common=common,
        sized="image_size" if sized else "",
        head=head,
    )


IMAGES = (
    # A pre-norm Vision Transformer over patches of 32 × 32 with sigmoid-weighted linear units.
    _image(
        "clip-vision",
        "The image encoder of CLIP (Radford et al., 2021).",
        "CLIPVision",
        {
            "clip-vision-mini": (160, layers(256, 4, 4, 1024, patch_size=16)),
            "clip-vit-base-patch32": (224, {}),
        },
    ),
    # Large depthwise convolutions between channels-last perceptrons.
    _image(
        "convnext",
        "ConvNeXt (Liu et al., 2022).",
        "ConvNext",
        {
            "convnext-mini": (64, {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]}),
            "convnext-tiny": (224, {}),
        },
        sized=False,
    ),
    # ConvNeXt with global response normalisation inside its perceptrons.
    _image(
        "convnextv2",
        "ConvNeXt V2 (Woo et al., 2023).",
        "ConvNextV2",
        {
            "convnextv2-atto": (160, {"hidden_sizes": [40, 80, 160, 320], "depths": [2, 2, 6, 2]}),
            "convnextv2-tiny": (224, {}),
        },
        sized=False,
    ),
    # Twelve layers over patches of 16 × 16.
    _image(
        "deit",
        "DeiT (Touvron et al., 2021): Vision Transformers of three widths with a distillation token.",
        "DeiT",
        {
            "deit-tiny": (224, {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768}),
            "deit-small": (224, {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}),
            "deit-base": (224, {}),
        },
    ),
    # A Vision Transformer over patches of 14 × 14 with scaled residual branches.
    _image(
        "dinov2",
        "DINOv2 (Oquab et al., 2024).",
        "Dinov2",
        {
            "dinov2-mini": (112, {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 3}),
            "dinov2-small": (224, {"hidden_size": 384, "num_attention_heads": 6}),
            "dinov2-base": (224, {}),
        },
    ),
    # Inverted residuals with squeeze-and-excitation; transformers' defaults are B7's, so B0's are spelled out.
    _image(
        "efficientnet",
        "EfficientNet-B0 (Tan and Le, 2019).",
        "EfficientNet",
        {"efficientnet-b0": (224, {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280})},
    ),
    # A convolutional stem, then attention and perceptrons that are normalised by batch.
    _image(
        "levit",
        "LeViT (Graham et al., 2021): attention with learned biases between shrinking stages.",
        "Levit",
        {
            "levit-128s": (
                224,
                {
                    "hidden_sizes": [128, 256, 384],
                    "num_attention_heads": [4, 6, 8],
                    "depths": [2, 3, 4],
                    "key_dim": [16, 16, 16],
                },
            ),
            "levit-256": (
                224,
                {
                    "hidden_sizes": [256, 384, 512],
                    "num_attention_heads": [4, 6, 8],
                    "depths": [4, 4, 4],
                    "key_dim": [32, 32, 32],
                },
            ),
        },
    ),
    # Inverted residuals of depthwise convolutions at full width.
    _image("mobilenet", "MobileNetV2 (Sandler et al., 2018).", "MobileNetV2", {"mobilenet-v2": (224, {})}),
    # Depthwise and pointwise convolutions without residuals, at full and at half width.
    _image(
        "mobilenet-v1",
        "MobileNetV1 (Howard et al., 2017).",
        "MobileNetV1",
        {"mobilenet-v1-half": (160, {"depth_multiplier": 0.5}), "mobilenet-v1": (224, {})},
    ),
    # Inverted residuals, and transformers over unfolded patches of the feature maps.
    _image(
        "mobilevit",
        "MobileViT (Mehta and Rastegari, 2022).",
        "MobileViT",
        {
            "mobilevit-xx-small": (
                256,
                {
                    "hidden_sizes": [64, 80, 96],
                    "neck_hidden_sizes": [16, 16, 24, 48, 64, 80, 320],
                    "expand_ratio": 2.0,
                },
            ),
            "mobilevit-small": (256, {}),
        },
    ),
    # Four stages of pooling and pointwise convolutions.
    _image(
        "poolformer",
        "PoolFormer (Yu et al., 2022): average pooling where others attend.",
        "PoolFormer",
        {
            "poolformer-mini": (160, {"hidden_sizes": [32, 64, 160, 256], "depths": [1, 1, 3, 1]}),
            "poolformer-s12": (224, {}),
        },
        sized=False,
    ),
    # Bottlenecks of grouped convolutions; names give the design and its floating-point operations.
    _image(
        "regnet",
        "RegNet (Radosavovic et al., 2020): the X design, and Y with squeeze-and-excitation.",
        "RegNet",
        {
            "regnet-y-200mf": (160, {"hidden_sizes": [24, 56, 152, 368], "depths": [1, 1, 4, 7], "groups_width": 8}),
            "regnet-x-800mf": (
                224,
                {
                    "hidden_sizes": [64, 128, 288, 672],
                    "depths": [1, 3, 7, 5],
                    "groups_width": 16,
                    "layer_type": "x",
                },
            ),
            "regnet-y-4gf": (224, {"hidden_sizes": [128, 192, 512, 1088], "depths": [2, 6, 12, 2], "groups_width": 64}),
        },
        sized=False,
    ),
    # Bottleneck residual blocks.
    _image(
        "resnet",
        "ResNet-50 (He et al., 2016).",
        "ResNet",
        {
            "resnet-tiny": (64, {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 1]}),
            "resnet-50": (224, {}),
        },
        sized=False,
    ),
    # A hierarchical encoder whose attention reads a reduced sequence, and a decoder of perceptrons and resizes that
    # scores every fourth pixel for the 150 classes of ADE20K.
    _image(
        "segformer",
        "SegFormer (Xie et al., 2021): semantic segmentation.",
        "Segformer",
        {
            "segformer-mini": (
                160,
                {
                    "hidden_sizes": [16, 32, 80, 128],
                    "num_attention_heads": [1, 2, 5, 8],
                    "decoder_hidden_size": 64,
                },
            ),
            "segformer-b0": (512, {}),
        },
        sized=False,
        head="ForSemanticSegmentation",
        num_labels=150,
    ),
    # Four stages; attention is written out, since transformers' fused path cannot be exported.
    _image(
        "swin",
        "The Swin Transformer (Liu et al., 2021): attention inside shifted windows.",
        "Swin",
        {"swin-mini": (56, {"embed_dim": 24, "depths": [1, 2], "num_heads": [2, 4]}), "swin-tiny": (224, {})},
        attn_implementation="eager",
    ),
    # Twelve layers of width 768 in the base size.
    _image(
        "vit",
        "The Vision Transformer (Dosovitskiy et al., 2021) with patches of 16 × 16.",
        "ViT",
        {"vit-tiny": (64, layers(64, 2, 2, 128)), "vit-base": (224, {})},
    ),
)
