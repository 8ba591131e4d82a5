"""A whole rehearsal: the deployment up, every load through it, everything down again."""

from __future__ import annotations

from contextlib import ExitStack

from generator.rehearsal.plan import Load
from generator.rehearsal.verdict import RehearsedLoad
from generator.rehearsal_host.deployment import Deployment, Places
from generator.rehearsal_host.disk_space import demand_room
from generator.rehearsal_host.driver import Driver, Say
from generator.rehearsal_host.environments import Environments
from generator.rehearsal_host.run_folder import RehearsalFolder
from generator.rehearsal_host.supervisor import supervised
from generator.rehearsal_host.work_folder import work_folder

_ROOM_BYTES = 100 * 10**6  # an export has a megabyte for each hundred requests


def rehearse(
    folder: RehearsalFolder, environments: Environments, say: Say
) -> tuple[RehearsedLoad, ...]:
    """Every load of the plan, those that the folder has already read from there.

    Whatever happens, every process that was started is ended. Raises ClusterFailure where this
    machine cannot run it, or a process dies.
    """
    missing = [load for load in folder.plan.loads if folder.rehearsed(load) is None]
    if missing:
        _run(missing, folder, environments, say)
    found = (folder.rehearsed(load) for load in folder.plan.loads)
    return tuple(each for each in found if each is not None)


def _run(
    loads: list[Load],
    folder: RehearsalFolder,
    environments: Environments,
    say: Say,
) -> None:
    with ExitStack() as stack:
        work = stack.enter_context(work_folder())
        demand_room(work, _ROOM_BYTES, "TMPDIR")
        demand_room(folder.root, _ROOM_BYTES, "--out")
        places = Places(work=work, logs=folder.logs.absolute())
        places.prepare()
        supervisor = stack.enter_context(supervised())
        plan = folder.plan
        deployment = Deployment(
            supervisor, plan, places, environments.dynamo_python, folder.write_timing()
        )
        say("starting the deployment")
        deployment.start()
        driver = Driver(supervisor, deployment, plan, places, environments.aiperf, say)
        for load in loads:
            folder.clear(load)
            rehearsed, samples = driver.run(load, folder.artifacts(load).absolute())
            folder.keep(rehearsed, samples)
