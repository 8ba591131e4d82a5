"""How the nodes of a deployment are kept inside one NVLink domain."""

from __future__ import annotations

from generator.wording import plural


def segment_nodes(nodes: int, nodes_per_rack: int | None, racks: int | None) -> int | None:
    """Nodes that must come from one rack: all of them, or the largest equal share that fits.

    None where the site has no racks (``nodes_per_rack``). ``racks`` is None where the site file
    does not count them; then nothing larger than a rack can be placed. Raises ValueError with the
    reason where a deployment cannot be.
    """
    if nodes_per_rack is None:
        return None
    if nodes <= nodes_per_rack:
        return nodes
    if racks is None:
        raise ValueError(
            f"{nodes} nodes are more than a rack of {nodes_per_rack},"
            " and the site file does not say how many racks there are"
        )
    shares = [size for size in range(nodes_per_rack, 1, -1) if nodes % size == 0]
    if not shares:
        raise ValueError(
            f"{nodes} nodes cannot be split into equal segments of at most {nodes_per_rack}"
        )
    segment = shares[0]
    if nodes // segment > racks * (nodes_per_rack // segment):
        raise ValueError(
            f"{nodes} nodes in segments of {segment} do not fit {plural(racks, 'rack')}"
            f" of {nodes_per_rack}"
        )
    return segment
