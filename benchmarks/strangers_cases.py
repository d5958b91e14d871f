"""The networks of `strangers.py`: classes and functions of torch, and architectures of transformers and timm."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Case = tuple[str, Callable[[], Any]]
IMAGE, TOKENS = (1, 3, 224, 224), (1, 64)

# Config classes of transformers; the smallest settings that keep the design.
TRANSFORMERS = (
    *("Autoformer", "Beit", "BigBird", "Bloom", "CTRL", "CamembertConfig", "Canine", "CLIPText", "ConvBert", "Cvt"),
    *("Data2VecText", "Deberta", "DINOv3ViT", "DPR", "DPT", "Electra", "Ernie", "Esm", "Falcon", "FNet", "Funnel"),
    *(
        "GPTBigCode",
        "GPTNeo",
        "GPTNeoX",
        "Granite",
        "Hubert",
        "IBert",
        "ImageGPT",
        "Informer",
        "LayoutLM",
        "Longformer",
    ),
    *(
        "Mamba",
        "Mamba2",
        "MBart",
        "MPNet",
        "MobileBert",
        "MobileNetV1",
        "MobileViTV2",
        "ModernBert",
        "Mvp",
        "Nystromformer",
    ),
    *(
        "Olmo",
        "PatchTST",
        "Pegasus",
        "Perceiver",
        "PLBart",
        "ProphetNet",
        "Pvt",
        "PvtV2",
        "Reformer",
        "RemBert",
        "RoFormer",
    ),
    *(
        "Rwkv",
        "SEW",
        "SqueezeBert",
        "StableLm",
        "Starcoder2",
        "Swinv2",
        "UniSpeech",
        "ViT",
        "ViTMAE",
        "ViTMSN",
        "Wav2Vec2",
    ),
    *("XGLM", "XLM", "XLNet", "Xmod", "Yolos", "Yoso"),
)
TIMM = (
    *("resnet18", "resnext50_32x4d", "seresnet50", "resnest14d", "res2net50_26w_4s", "dpn68", "dla34", "hrnet_w18_small"),
    *("efficientnet_lite0", "mnasnet_100", "fbnetc_100", "mobilenetv3_large_100", "mobilenetv4_conv_small", "ghostnet_100"),
    *("lcnet_050", "tinynet_e", "mixnet_s", "hardcorenas_a", "repvgg_a0", "rexnet_100", "nfnet_l0", "dm_nfnet_f0"),
    *("skresnet18", "ese_vovnet19b_dw", "selecsls42b", "cspresnet50", "darknet53", "vit_tiny_patch16_224", "cait_xxs24_224"),
    *("crossvit_tiny_240", "convit_tiny", "coat_tiny", "pit_ti_224", "tnt_s_patch16_224", "twins_pcpvt_small", "xcit_nano_12_p16_224"),
    *("mixer_s32_224", "gmlp_s16_224", "resmlp_12_224", "volo_d1_224", "visformer_tiny", "swinv2_tiny_window8_256", "maxvit_tiny_tf_224"),
    *("coatnet_0_rw_224", "edgenext_small", "efficientformer_l1", "fastvit_t8", "focalnet_tiny_srf", "gcvit_xxtiny"),
    *("halonet26t", "lambda_resnet26t", "botnet26t_256", "eca_resnet33ts", "hiera_tiny_224", "inception_next_tiny"),
    *("mambaout_femto", "caformer_s18", "mvitv2_tiny", "nest_tiny_jx", "poolformerv2_s12", "pvt_v2_b0", "sequencer2d_s"),
    *("starnet_s1", "tiny_vit_5m_224", "repghostnet_050", "repvit_m0_9", "rdnet_tiny", "xception41", "inception_v3", "pnasnet5large"),
)  # fmt: skip


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: Any) -> Any:
        return self._function(*inputs)


def _rand(*shape: int) -> torch.Tensor:
    return torch.rand(*shape) + 0.5


def modules() -> Iterator[Case]:
    """Classes of `torch.nn`."""
    sequence, image, volume = (_rand(8, 128, 512),), (_rand(4, 64, 56, 56),), (_rand(1, 32, 16, 28, 28),)
    for cell in (nn.LSTM, nn.GRU, nn.RNN):
        yield f"{cell.__name__}", lambda c=cell: (c(512, 512, batch_first=True), sequence)
        yield (
            f"{cell.__name__} both ways",
            lambda c=cell: (c(512, 256, 2, bidirectional=True, batch_first=True), sequence),
        )
    yield "LSTM small", lambda: (nn.LSTM(64, 64, batch_first=True), (_rand(1, 32, 64),))
    yield "LSTM projected", lambda: (nn.LSTM(512, 512, proj_size=128, batch_first=True), sequence)
    for cell in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        yield f"{cell.__name__}", lambda c=cell: (c(512, 512), (_rand(64, 512),))
    yield "TransformerEncoderLayer", lambda: (nn.TransformerEncoderLayer(512, 8, batch_first=True), sequence)
    yield "TransformerDecoderLayer", lambda: (nn.TransformerDecoderLayer(512, 8, batch_first=True), sequence * 2)
    yield "Transformer", lambda: (nn.Transformer(256, 8, 2, 2, batch_first=True), (_rand(2, 64, 256),) * 2)
    yield "MultiheadAttention", lambda: (nn.MultiheadAttention(512, 8, batch_first=True), sequence * 3)
    yield "Bilinear", lambda: (nn.Bilinear(128, 128, 64), (_rand(64, 128),) * 2)
    yield "PairwiseDistance", lambda: (nn.PairwiseDistance(), (_rand(512, 256),) * 2)
    yield "EmbeddingBag", lambda: (nn.EmbeddingBag(50_000, 256), (torch.randint(50_000, (256, 64)),))
    yield "Conv1d", lambda: (nn.Conv1d(256, 256, 5), (_rand(4, 256, 512),))
    yield "Conv3d", lambda: (nn.Conv3d(32, 64, 3), volume)
    yield "ConvTranspose1d", lambda: (nn.ConvTranspose1d(128, 128, 4, 2), (_rand(4, 128, 256),))
    yield "ConvTranspose3d", lambda: (nn.ConvTranspose3d(32, 32, 3, 2), volume)
    yield "MaxPool3d", lambda: (nn.MaxPool3d(2), volume)
    yield "AvgPool3d", lambda: (nn.AvgPool3d(2), volume)
    yield "LPPool2d", lambda: (nn.LPPool2d(2, 3), image)
    yield "FractionalMaxPool2d", lambda: (nn.FractionalMaxPool2d(3, output_ratio=0.5), image)
    yield "AdaptiveAvgPool3d", lambda: (nn.AdaptiveAvgPool3d(4), volume)
    yield "PixelShuffle", lambda: (nn.PixelShuffle(2), image)
    yield "ChannelShuffle", lambda: (nn.ChannelShuffle(4), image)
    yield "Unfold", lambda: (nn.Unfold(3), image)
    yield "Fold", lambda: (nn.Fold((56, 56), 3), (_rand(4, 576, 2916),))
    yield "Upsample trilinear", lambda: (nn.Upsample(scale_factor=2, mode="trilinear"), volume)
    yield "ReflectionPad2d", lambda: (nn.ReflectionPad2d(3), image)
    for layer in (nn.GroupNorm(8, 64), nn.InstanceNorm2d(64), nn.LocalResponseNorm(5), nn.BatchNorm2d(64)):
        yield type(layer).__name__, lambda one=layer: (one, image)
    yield "RMSNorm", lambda: (nn.RMSNorm(512), sequence)
    for layer in (
        nn.GLU(),
        nn.PReLU(),
        nn.Mish(),
        nn.Softplus(),
        nn.Hardswish(),
        nn.CELU(),
        nn.LogSigmoid(),
        nn.Softsign(),
        nn.SELU(),
        nn.Hardshrink(),
        nn.Softmin(-1),
    ):
        yield type(layer).__name__, lambda one=layer: (one, sequence)


def functions() -> Iterator[Case]:
    """Functions of torch."""
    rows, square, image = _rand(512, 256), _rand(256, 256), _rand(2, 32, 64, 64)
    grid, indices = torch.rand(2, 64, 64, 2) * 2 - 1, torch.randint(512, (512, 256))
    cases: tuple[tuple[str, Callable[..., Any], tuple[Any, ...]], ...] = (
        ("grid_sample", lambda x, g: functional.grid_sample(x, g, align_corners=False), (image, grid)),
        ("fft", torch.fft.fft, (rows,)),
        ("rfft2", torch.fft.rfft2, (image,)),
        ("stft", lambda x: torch.stft(x, 256, return_complex=True), (_rand(4, 16_000),)),
        ("einsum matmul", lambda a, b: torch.einsum("bij,bjk->bik", a, b), (_rand(8, 128, 128),) * 2),
        ("einsum attention", lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), (_rand(2, 8, 128, 64),) * 2),
        ("cdist", torch.cdist, (rows, rows)),
        ("cosine_similarity", functional.cosine_similarity, (rows, rows)),
        ("scatter_add", lambda x, i: torch.zeros_like(x).scatter_add(0, i, x), (rows, indices)),
        ("index_add", lambda x, i: torch.zeros_like(x).index_add(0, i, x), (rows, indices[:, 0])),
        ("gather", lambda x, i: x.gather(0, i), (rows, indices)),
        ("cumsum", lambda x: x.cumsum(0), (rows,)),
        ("cumprod", lambda x: x.cumprod(-1), (rows,)),
        ("logcumsumexp", lambda x: x.logcumsumexp(-1), (rows,)),
        ("topk", lambda x: x.topk(16), (rows,)),
        ("sort", lambda x: x.sort(), (rows,)),
        ("argsort", lambda x: x.argsort(), (rows,)),
        ("median", lambda x: x.median(-1), (rows,)),
        ("kthvalue", lambda x: x.kthvalue(9), (rows,)),
        ("searchsorted", torch.searchsorted, (rows.sort().values, rows)),
        ("bucketize", torch.bucketize, (rows, torch.linspace(0, 2, 64))),
        ("matrix_exp", torch.linalg.matrix_exp, (square / 256,)),
        ("inverse", torch.linalg.inv, (square + 256 * torch.eye(256),)),
        ("cholesky", torch.linalg.cholesky, (square @ square.T + 256 * torch.eye(256),)),
        ("solve", torch.linalg.solve, (square + 256 * torch.eye(256), square)),
        ("svd", torch.linalg.svdvals, (square,)),
        ("qr", torch.linalg.qr, (square,)),
        ("eigh", torch.linalg.eigh, (square + square.T,)),
        ("det", torch.linalg.det, (square / 16,)),
        ("lstsq", lambda a, b: torch.linalg.lstsq(a, b).solution, (rows, rows)),
        ("tensordot", lambda a, b: torch.tensordot(a, b, 1), (rows, square)),
        ("baddbmm", torch.baddbmm, (_rand(8, 128, 128),) * 3),
        ("addmv", torch.mv, (_rand(2048, 2048), _rand(2048))),
        ("outer", torch.outer, (_rand(1024), _rand(1024))),
        ("dot", torch.dot, (_rand(1 << 20), _rand(1 << 20))),
        ("logsumexp", lambda x: x.logsumexp(-1), (rows,)),
        ("std", lambda x: x.std(-1), (rows,)),
        ("norm", lambda x: torch.linalg.vector_norm(x, dim=-1), (rows,)),
        ("roll", lambda x: x.roll(3, 0), (rows,)),
        ("flip", lambda x: x.flip(0), (rows,)),
        ("tril", lambda x: x.tril(), (square,)),
        ("repeat_interleave", lambda x: x.repeat_interleave(4, 0), (rows,)),
        ("one_hot", lambda i: functional.one_hot(i, 512), (indices[:, 0],)),
        ("bincount", lambda i: torch.bincount(i, minlength=512), (indices[:, 0],)),
        ("histc", lambda x: torch.histc(x, 64), (rows,)),
        ("unique", torch.unique, (indices,)),
        ("nonzero", lambda x: torch.nonzero(x > 1), (rows,)),
        ("lerp", torch.lerp, (rows, rows, rows)),
        ("erfinv", lambda x: torch.erfinv(x / 2), (rows,)),
        ("bessel", torch.special.i0, (rows,)),
        ("digamma", torch.digamma, (rows,)),
        ("complex product", lambda x: torch.view_as_real(torch.view_as_complex(x) ** 2), (_rand(512, 128, 2),)),
        ("conv by unfold", lambda x: x.unfold(2, 5, 1).sum(-1), (image,)),
        ("scaled attention", functional.scaled_dot_product_attention, (_rand(2, 8, 128, 64),) * 3),
        ("int8 product", lambda x: torch._int_mm(x, x), (torch.randint(-9, 9, (256, 256), dtype=torch.int8),)),
        (
            "ctc_loss",
            lambda x: functional.ctc_loss(x, torch.ones(4, 9).long(), (64,) * 4, (9,) * 4),
            (_rand(64, 4, 32).log_softmax(-1),),
        ),
    )
    for name, function, inputs in cases:
        yield name, lambda function=function, inputs=inputs: (Call(function), inputs)


def _from_transformers(name: str) -> Any:
    import transformers

    config = getattr(transformers, name if name.endswith("Config") else f"{name}Config")()
    for key in ("num_hidden_layers", "num_layers", "n_layer", "encoder_layers", "decoder_layers"):
        if isinstance(getattr(config, key, None), int):
            # a configuration that derives this number refuses to be told it, by this exception
            with contextlib.suppress(NotImplementedError):
                setattr(config, key, 2)
    if hasattr(config, "vocab_size"):
        config.vocab_size = min(config.vocab_size or 4096, 4096)
    config.pad_token_id, config.use_cache, config.return_dict = 0, False, True
    module = transformers.AutoModel.from_config(config)
    kind = getattr(module, "main_input_name", "input_ids")
    if kind == "pixel_values":
        size = getattr(config, "image_size", 224)
        side = size if isinstance(size, int) else size[0]
        inputs: Any = _rand(1, getattr(config, "num_channels", 3), side, side)
    elif kind == "input_values":
        inputs = _rand(1, 16_000)
    else:
        inputs = torch.randint(1, min(999, config.vocab_size), TOKENS)
    both = {kind: inputs} | ({"decoder_input_ids": inputs} if config.is_encoder_decoder and kind == "input_ids" else {})

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module
            self.names = tuple(both)

        def forward(self, *given: torch.Tensor) -> Any:
            return self.inner(**dict(zip(self.names, given, strict=True))).to_tuple()

    return Named(), tuple(both.values())


def architectures() -> Iterator[Case]:
    """Architectures of transformers that the zoo does not hold, with two layers."""
    for name in TRANSFORMERS:
        yield f"transformers {name}", lambda name=name: _from_transformers(name)


def _from_timm(name: str) -> Any:
    import timm

    module = timm.create_model(name)
    return module, (_rand(1, *module.default_cfg["input_size"]),)


def images() -> Iterator[Case]:
    """Architectures of timm."""
    for name in TIMM:
        yield f"timm {name}", lambda name=name: _from_timm(name)


GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "modules": modules,
    "functions": functions,
    "transformers": architectures,
    "timm": images,
}
