"""Site files: what is read, and every problem with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from generator.errors import InvalidInput
from generator.site import Site, SrtctlSite, parse_site, read_site
from generator.validation import schema

HEAD = "version: 1\nname: here\n"


def test_the_example(repository: Path) -> None:
    site = read_site(repository / "recipes" / "sites" / "example-gb300.yaml")
    assert (site.name, site.account, site.partition) == ("example-gb300", "my-account", "gb300")
    assert (site.counts_gpus, site.gres) == (True, "gpu:gb300:{gpus}")
    assert (site.nodes_per_rack, site.racks, site.segment) == (18, 2, None)
    assert site.directives == {"mem": "0"}
    assert site.srtctl == SrtctlSite(
        checkout=Path("/shared/srt-slurm"),
        python=Path("/shared/srt-slurm/.venv-compute/bin/python"),
        config=Path("/shared/srt-slurm/srtslurm.yaml"),
    )
    assert len(site.paths()) == 5


def test_the_rack(repository: Path) -> None:
    site = read_site(repository / "recipes" / "sites" / "rack.yaml")
    assert site == Site(name="rack", partition="batch", racks=1)
    assert site.paths() == ()


def test_defaults() -> None:
    site = parse_site(f"{HEAD}slurm: {{gpus: none}}\nsrtctl: {{checkout: /s}}\n", "x.yaml")
    assert (site.counts_gpus, site.gres, site.exclusive) == (False, None, True)
    assert site.srtctl is not None
    assert site.srtctl.config == Path("/s/srtslurm.yaml")
    assert parse_site(f"{HEAD}slurm: {{gpus: gres}}\n", "x.yaml").gres == "gpu:{gpus}"


WRONG = {
    "all at once": (
        "slurm: {account: a b, racks: 0, mem: 3}\nmodels: {m: relative/path}\n",
        [
            "x.yaml:3: slurm.account: 'a b' is not valid here (a name without blanks)",
            "x.yaml:3: slurm.mem: unknown key",
            "x.yaml:3: slurm.racks: must be at least 1, got 0",
            "x.yaml:4: models.m: 'relative/path' is not valid here (an absolute path",
        ],
    ),
    "two options in one": (
        'slurm: {directives: {mem: "0", "x\\n#SBATCH --y": "1"}, partition: "a\\nb"}\n',
        ["slurm.directives", "slurm.partition"],
    ),
    "gres without gpus": (
        'slurm: {gres: "gpu:{gpus}"}\n',
        ["x.yaml:3: slurm.gres: is only used with gpus: gres (write gpus: gres beside it)"],
    ),
    "racks without segments": (
        "slurm: {segment: false, racks: 2}\n",
        ["x.yaml:3: slurm.racks: several racks need segments to keep a deployment together"],
    ),
    "a pattern without its number": ("slurm: {gpus: gres, gres: gpu}\n", ["gpu:{gpus}"]),
    "no slurm": ("models: {}\n", ["slurm"]),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_problems(text: str, expected: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_site(HEAD + text, "x.yaml")
    found = [str(problem) for problem in error.value.problems]
    assert len(found) == len(expected)
    for problem, start in zip(found, expected, strict=True):
        assert start in problem


def test_the_schema_explains_itself() -> None:
    document = schema("site")
    Draft202012Validator.check_schema(document)
    for part in (document, *document["$defs"].values()):
        for name, field in part["properties"].items():
            if "$ref" in field:
                continue
            assert field["description"], name
            for example in field["examples"]:
                Draft202012Validator(field).validate(example)
