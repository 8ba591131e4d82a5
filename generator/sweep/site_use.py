"""What a sweep takes from its site and from the cluster: where jobs go and what they run."""

from __future__ import annotations

from pathlib import Path

from generator.cluster.job_file import (
    CommandLauncher,
    Launcher,
    RehearseLauncher,
    SrtctlLauncher,
)
from generator.cluster.protocol import ClusterFeatures
from generator.errors import InvalidInput, Problem
from generator.site import Site
from generator.sweep.directives import directive_problems
from generator.sweep.folder import SweepSettings
from generator.sweep.planning import Placement

ANY_SITE = Site(name="")
"""Where no site file is given: one rack of 18 nodes, the user's own account and partition."""


def placement_of(site: Site, features: ClusterFeatures) -> Placement:
    """What the site adds to every job, on a cluster that can do this.

    Raises InvalidInput for an option of the site that the submission decides by itself.
    """
    if found := list(directive_problems(site.directives, "slurm.directives")):
        raise InvalidInput(found)
    return Placement(
        account=site.account,
        partition=site.partition,
        qos=site.qos,
        # A site without segments has no domain that a deployment could leave.
        nodes_per_rack=None if site.segment is False else site.nodes_per_rack,
        racks=site.racks,
        has_segment=features.segment if site.segment is None else site.segment,
        counts_gpus=site.counts_gpus,
        gres=site.gres,
        exclusive=site.exclusive,
        max_array_tasks=min(features.max_array_tasks, site.max_array_tasks or 10**9),
        directives=site.directives,
    )


def launcher_of(settings: SweepSettings, site: Site) -> Launcher:
    """What every job of a sweep runs; raises InvalidInput where the site would have to say."""
    environment = tuple(sorted(site.environment.items()))
    if settings.launcher == "command":
        return CommandLauncher(argv=settings.command, environment=environment)
    if settings.launcher == "rehearse":
        cache = Path(settings.cache)
        return RehearseLauncher(
            cache=cache, scale=settings.scale, timing=settings.timing, environment=environment
        )
    if site.srtctl is None:
        hint = "give --site with a file that has a section srtctl, or --launcher command"
        message = "the srtctl launcher needs to know where srt-slurm lies"
        raise InvalidInput(Problem(message=message, hint=hint))
    return SrtctlLauncher(
        checkout=site.srtctl.checkout,
        python=site.srtctl.python,
        config=site.srtctl.config,
        environment=environment,
    )
