"""Random networks of torch on several targets, beside eager torch.

    python tests/python/fuzz/fuzz_networks.py [--models N | --seconds 60] [--seed 0] [--families first,moving]
        [--only FAMILY:SEED:INDEX]

A network is a text of lines that grows at random (networks/program.py); a family says what it begins with and by which
lines it grows (networks/families.py). What is found is made smaller, printed as the text of a `forward`, and tried
again by `--only`.
"""

from __future__ import annotations

import os
import random
import re
import sys
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
import torch  # noqa: E402

from fuzz.networks.compare import CPU, INTEGERS, OTHERS, THEIRS, Target, attempt  # noqa: E402
from fuzz.networks.families import FAMILIES, draw  # noqa: E402
from fuzz.networks.program import Line, Machine, Program  # noqa: E402
from fuzz.networks.quantized import attempt_quantized  # noqa: E402
from fuzz.networks.training import attempt_training  # noqa: E402
from fuzz.workers import BATCH, Finding, Found, command_line, tell, try_each  # noqa: E402


def tried(family: str, program: Program, targets: list[Target], chance: int) -> str:
    """A word for how it ended on those targets; raises Found."""
    if family == "training":
        return attempt_training(program, random.Random(chance))
    if family == "quantized":
        return attempt_quantized(program, random.Random(chance), targets)
    return attempt(program, targets)


def failure(family: str, program: Program, target: Target, chance: int) -> str | None:
    """What is wrong on that target; None where nothing is."""
    try:
        tried(family, program, [target], chance)
    except Found as found:
        return str(found)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:600]}"
    return None


def cuts(program: Program) -> list[Program]:
    """Smaller programs: of one output, of fewer runs, without a line whose value becomes an input."""
    out = [replace(program, outputs=[name]).read() for name in program.outputs if len(program.outputs) > 1]
    if len(program.runs) > 1:
        out.append(replace(program, runs=program.runs[:1]))
        out.append(replace(program, runs=program.runs[:-1]))
    machine = Machine(program, None)
    machine.begin(program.runs[0])
    with torch.no_grad():
        for k, line in enumerate(program.lines):
            try:
                made = machine.step(line)
            except Exception:
                break
            rest = [other for j, other in enumerate(program.lines) if j != k]
            if not line.made:
                out.append(replace(program, lines=rest).read())
                continue
            if (
                len(program.runs) == 1
                and not any(name in program.outputs for name in line.made)
                and not any(x.is_complex() for x in made)
            ):
                runs = [{**program.runs[0], **{name: x.clone() for name, x in zip(line.made, made, strict=True)}}]
                out.append(replace(program, lines=rest, runs=runs).read())
            for name, x in program.runs[0].items():
                if (
                    len(made) == 1
                    and x.shape == made[0].shape
                    and x.dtype == made[0].dtype
                    and line.made[0] not in program.outputs
                ):
                    swapped = [
                        Line(other.made, _renamed(other.text, line.made[0], name), other.moves) for other in rest
                    ]
                    out.append(replace(program, lines=swapped).read())
    return out


def _renamed(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{old}\b", new, text)


def shrink(family: str, program: Program, target: Target, chance: int, tries: int = 120) -> Program:
    """The smallest program that was found to go wrong, in whatever way."""
    again = True
    while again and tries > 0:
        again = False
        for smaller in cuts(program):
            tries -= 1
            if len(smaller.lines) + len(smaller.outputs) + len(smaller.runs) >= len(program.lines) + len(
                program.outputs
            ) + len(program.runs):
                continue
            if failure(family, smaller, target, chance) is not None:
                program, again = smaller, True
                break
            if tries <= 0:
                break
    return program


def targets(family: str, rng: random.Random) -> list[Target]:
    return [
        CPU,
        *([INTEGERS] if family == "quantized" else []),
        *rng.sample(
            [each for each in OTHERS if os.environ.get("FUZZ_ENGINES", "1") == "1" or each.may_err != THEIRS], 2
        ),
    ]


def compare(family: str, seed: int, index: int, small: bool = True) -> str:
    """How it ended; raises Found with the smaller program."""
    if index // BATCH % 3 == 2:
        os.environ["HETNN_TARGET"] = "avx2"
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rng = random.Random(f"{family}:{seed}:{index}")
    program, chance = draw(family, rng), rng.randrange(1 << 30)
    chosen = targets(family, rng)
    try:
        return tried(family, program, chosen, chance)
    except Exception as error:
        what = str(error) if isinstance(error, Found) else f"{type(error).__name__}: {str(error)[:600]}"
        for target in chosen if small else []:
            if failure(family, program, target, chance) is None:
                continue
            least = shrink(family, program, target, chance)
            raise Found(f"{target}: {failure(family, least, target, chance)}\n{least.told()}") from error
        raise Found(f"{what}\n{program.told()}") from error


def fuzz(
    families: list[str], models: int, seed: int, first: int = 0, seconds: float = float("inf")
) -> tuple[Counter[str], list[Finding]]:
    """Tries that many models of each family; how they ended, and what was found."""
    counts: Counter[str] = Counter()
    findings: list[Finding] = []
    for family in families:
        got, found = try_each(
            lambda index, family=family: compare(family, seed, index), first, models, seconds=seconds / len(families),
            describe=lambda index, family=family: f"\n--only {family}:{seed}:{index}",
        )  # fmt: skip
        print(family, dict(got), len(found), flush=True)
        counts += got
        findings += found
    return counts, findings


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    if args.only:
        family, seed, index = args.only.split(":")
        program = draw(family, random.Random(args.only))
        print(program.told())
        print(compare(family, int(seed), int(index)))
        return 0
    return tell("networks", *fuzz(args.families.split(","), args.models, args.seed, args.first, args.seconds))


if __name__ == "__main__":
    sys.exit(main())
