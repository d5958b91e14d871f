"""Write the generated parts of the README in both languages: the same figures under words of their own."""

from pathlib import Path

from opmark.core.files import write_text

ROOT = Path(__file__).parent.parent
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh.md"
WORDS = {
    "kernels measured again later: median difference, 95 % within": "稍后重测的内核：差异中位数，95 % 以内",
    "networks of unseen families within ±10 %": "未见家族的网络，误差 ±10 % 以内",
    "kernels of unseen shapes within ±10 %": "未见形状的内核，误差 ±10 % 以内",
    "90 % intervals hold, networks and kernels": "90 % 区间的覆盖率，网络与内核",
    "whole networks (families)": "完整网络（家族数）",
    "their median error": "其误差中位数",
    "| kernels |": "| 内核 |",
    "| network | target | predicted | measured | error |": "| 网络 | 目标 | 预测 | 实测 | 误差 |",
    "(median error ": "（误差中位数 ",
    ", largest ": "，最大 ",
    " %)": " %）",
    " of ": " / ",
}


def translated(text: str) -> str:
    """The Chinese twin of a generated table."""
    for english, chinese in WORDS.items():
        text = text.replace(english, chinese)
    return text


def replace_part(begin: str, end: str, text: str) -> None:
    """Replace what stands between the marks `begin` and `end` of both READMEs."""
    for path, part in ((ENGLISH, text), (CHINESE, translated(text))):
        before, _, rest = path.read_text(encoding="utf-8").partition(begin)
        write_text(path, f"{before}{begin}\n{part}\n{end}{rest.partition(end)[2]}")
