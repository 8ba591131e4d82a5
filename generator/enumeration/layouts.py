"""Every layout of one engine inside an NVLink domain, legal or not."""

from __future__ import annotations

from collections.abc import Iterator

from generator.parallel import ParallelLayout


def layouts_within(gpus: int, *, has_experts: bool) -> Iterator[ParallelLayout]:
    """Each TP x PP x DP of at most ``gpus`` ranks, with and without EP, and with every DCP.

    EP is told apart only where there are experts and several ranks to spread them over; DCP takes
    the sizes that divide TP.
    """
    for tensor in range(1, gpus + 1):
        for pipeline in range(1, gpus // tensor + 1):
            for data in range(1, gpus // (tensor * pipeline) + 1):
                spreads_experts = has_experts and tensor * data > 1
                for expert_parallel in (False, True) if spreads_experts else (False,):
                    for context in _divisors(tensor):
                        yield ParallelLayout(
                            tensor=tensor,
                            pipeline=pipeline,
                            data=data,
                            decode_context=context,
                            expert_parallel=expert_parallel,
                        )


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
