"""HYG: what makes a recipe run elsewhere, and the same way tomorrow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from generator.checks.job import Job
from generator.checks.rule import Hit, Severity, rule
from generator.wording import shown

_FLOATING_TAGS = re.compile(r"(latest|nightly|main|master|dev|stable)\Z")
_DYNAMO_SOURCES = ("version", "wheel", "hash", "git", "top_of_tree")
_INTERNAL = re.compile(
    r"(?:^|[\s=:,'\"])(/(?:home|users|lustre|scratch|mnt|nfs|gpfs|raid|fsx?|shared|projects?)/[^\s'\",:]*)"
)


@rule("HYG001", Severity.WARNING)
def default_dynamo_over_image(job: Job) -> Iterator[Hit]:
    """Dynamo's default version is installed over the image.

    ## What it does
    Looks for recipes with the Dynamo frontend that neither say `install: false` nor which version.

    ## Why is this bad?
    An old default is pip-installed over what the image brings.

    ## Example
    No `dynamo` section beside an image that has Dynamo.
    """
    if job.form.get("frontend", "type") not in (None, "dynamo"):
        return
    pinned = any(job.form.get("dynamo", key) for key in _DYNAMO_SOURCES)
    if not pinned and job.form.get("dynamo", "install") is not False:
        yield job.hit(
            ("dynamo",),
            "no version and not install: false: an old default is installed over the image",
            "write dynamo.install: false, or the version",
        )


@rule("HYG002", Severity.WARNING)
def internal_path(job: Job) -> Iterator[Hit]:
    """A path of one cluster stands in the recipe.

    ## What it does
    Looks for paths under /home, /lustre, /scratch, /mnt and the like in the model's path, images,
    mounts, environments and the benchmark's command.

    ## Why is this bad?
    The recipe runs nowhere else, and tells how the inside of a cluster looks.

    ## Example
    `model.path: /lustre/team/models/DeepSeek-R1`.
    """
    for path, found in job.form.values.items():
        is_looked_at = path[0] in ("model", "environment", "container_mounts", "extra_mount") or (
            len(path) > 2 and (path[0] == "roles" and path[2] in ("env", "args"))
        )
        if not is_looked_at and path not in (("benchmark", "command"), ("identity", "container")):
            continue
        texts = found.value if isinstance(found.value, tuple) else (found.value,)
        inside = _INTERNAL.search("\n".join(map(str, (path[-1], *texts))))
        if inside is not None:
            message = f"{shown(inside[1])} is a path of one cluster"
            yield job.hit(path, message, "use hf:<repo>, a public image or an alias")


@rule("HYG003", Severity.WARNING)
def floating_image(job: Job) -> Iterator[Hit]:
    """An image has no tag, or one that moves.

    ## What it does
    Looks at the images of the model, the frontend and the benchmark. Names without a slash are
    aliases of the cluster's file and taken as pinned there, save for nginx's.

    ## Why is this bad?
    Tomorrow it is another image, and results cannot be repeated.

    ## Example
    `container: vllm/vllm-openai:latest`.
    """
    for path in (
        ("model", "container"),
        ("frontend", "nginx_container"),
        ("benchmark", "container_image"),
        ("identity", "container", "image"),
    ):
        image = job.form.get(*path)
        if not isinstance(image, str) or "@sha256:" in image or image.endswith(".sqsh"):
            continue
        name, _, tag = image.rpartition("/")[2].partition(":")
        is_alias = "/" not in image and name != "nginx"
        if tag and _FLOATING_TAGS.match(tag):
            yield job.hit(path, f"tag {shown(tag)} moves", "pin a release, or a digest")
        elif not tag and not is_alias:
            yield job.hit(path, f"{shown(image)} has no tag", "pin a release, or a digest")
