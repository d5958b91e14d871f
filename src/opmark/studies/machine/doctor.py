"""Diagnose this machine: its facts, the working parts, the current noise, and advice."""

import importlib.metadata
import importlib.util
import shutil
from dataclasses import dataclass

from opmark.bench.run.environment import probe
from opmark.bench.run.noise import QUIET, Noise
from opmark.bench.run.noise import measure as measure_noise
from opmark.bench.worker.backend import BACKENDS
from opmark.core.errors import UnavailableError
from opmark.core.measurements.environment import Environment
from opmark.core.registry import install_hint
from opmark.studies.machine.facts import Gpu, gpus

# Extra: the module it installs, and its purpose.
EXTRAS = {
    "models": ("transformers", "networks of the zoo that need transformers"),
    "sandbox": ("pyseccomp", "scoring submissions of others"),
    "gpu": ("pynvml", "clocks and power of NVIDIA GPUs beside every sample"),
    "meta": ("mlcroissant", "checking a release's Croissant metadata"),
}
NOISY_STOLEN_SHARE = 0.02
_ASKED_FOR = frozenset({"openvino"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A runtime or an extra; `hint` says how to install one that does not work."""

    name: str
    works: bool
    detail: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The report of `opmark doctor`; `advice` is empty on a quiet machine where everything works."""

    device: str
    environment: Environment
    gpus: tuple[Gpu, ...]
    runtimes: tuple[Component, ...]
    extras: tuple[Component, ...]
    noise: Noise
    advice: tuple[str, ...]


def diagnose(*, seconds: float = 2.0) -> Diagnosis:
    """Diagnose this machine; the noise is measured for `seconds`."""
    found = tuple(runtime(name) for name in BACKENDS.names())
    environment = probe([BACKENDS.load(part.name) for part in found if part.works])
    noise = measure_noise(seconds)
    cards = gpus()
    return Diagnosis(
        device=environment.device,
        environment=environment,
        gpus=cards,
        runtimes=found,
        extras=(*(extra(name) for name in EXTRAS), bubblewrap()),
        noise=noise,
        advice=(*advice_on_noise(noise, environment), *_advice_on_parts(found, cards)),
    )


def runtime(name: str) -> Component:
    """The state of the backend `name`: its targets, or the reason why it cannot be used."""
    try:
        backend = BACKENDS.load(name)
    except UnavailableError as missing:
        return Component(name=name, works=False, detail=missing.message, hint=missing.hint or "")
    reason = backend.unavailable()
    if reason:
        hint = backend.to_install or install_hint(name.partition("-")[0])
        return Component(name=name, works=False, detail=reason, hint=hint)
    targets = ", ".join(target.name for target in backend.targets("here"))
    return Component(name=name, works=True, detail=targets)


def extra(name: str) -> Component:
    """The state of the optional dependency `name`."""
    module, purpose = EXTRAS[name]
    if importlib.util.find_spec(module) is None:
        return Component(name=name, works=False, detail=purpose, hint=install_hint(module))
    distributions = importlib.metadata.packages_distributions().get(module, [module])
    version = importlib.metadata.version(distributions[0])
    return Component(name=name, works=True, detail=f"{purpose} ({distributions[0]} {version})")


def bubblewrap() -> Component:
    """The state of bubblewrap, the program that runs submissions in a sandbox."""
    purpose = "running submissions of others in a sandbox"
    if shutil.which("bwrap") is None:
        return Component(
            name="bubblewrap", works=False, detail=purpose, hint="install your distribution's bubblewrap package"
        )
    return Component(name="bubblewrap", works=True, detail=purpose)


def advice_on_noise(noise: Noise, environment: Environment) -> tuple[str, ...]:
    """Advice that would improve measurements on this machine, the most helpful first."""
    noted = environment.noted
    found = []
    if noise.verdict != QUIET:
        found.append(f"{noise.verdict.capitalize()}: {noise.advice}.")
    if noted.get("fifo") is False:
        found.append(
            "Real-time priority (SCHED_FIFO) is not permitted: run as root, give the interpreter CAP_SYS_NICE "
            "(setcap cap_sys_nice+ep), or start the container with --cap-add SYS_NICE; kernels above 3 ms gain most."
        )
    stolen = noted.get("stolen_share")
    if isinstance(stolen, float) and stolen > NOISY_STOLEN_SHARE:
        found.append(
            f"The hypervisor gave {100 * stolen:.0f} % of the processor time since start to other guests: "
            "measure at another time, or on a dedicated host."
        )
    governor = noted.get("governor")
    if governor and governor != "performance":
        found.append(
            f"The frequency governor is {governor}: set it to performance (cpupower frequency-set -g performance)."
        )
    return tuple(found)


def _advice_on_parts(runtimes: tuple[Component, ...], cards: tuple[Gpu, ...]) -> tuple[str, ...]:
    found = [
        f"{part.name} cannot be measured: {part.detail}. {part.hint}".strip()
        for part in runtimes
        # A GPU runtime is missing only on a machine with a GPU, and OpenVINO only where somebody asks for it.
        if not part.works and part.name not in _ASKED_FOR and (cards or not part.name.endswith("-cuda"))
    ]
    on_gpu = any("cuda" in part.detail for part in runtimes if part.works)
    if cards and not on_gpu:
        found.append(
            f"There is a GPU ({cards[0].name}), but no installed runtime can use it: install their CUDA builds."
        )
    return tuple(found)
