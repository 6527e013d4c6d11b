"""The directory of an operator's tensors: one class for each kind of tree."""

from typing import Protocol

from dumpsim.archive.modeltree import ModelTree
from dumpsim.archive.tree import Tree, newest_stamp
from dumpsim.core.events import NO_GRAPH, TaskEvent
from dumpsim.dump.info import SessionInfo
from dumpsim.dump.iteration import Moment
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest

__all__ = ["Location", "locate"]


class Location(Protocol):
    """A tree with the directories of tensors."""

    root: str  # the dump's directory in summary and manifest
    owner: str  # the rank or device, among those that share the directory

    def directory(self, event: TaskEvent, moment: Moment) -> str:
        """Return the directory of the operator's tensors."""
        ...

    def graph_id(self, event: TaskEvent) -> int:
        """Return the number of the graph in records."""
        ...

    def exists(self) -> bool:
        """Return whether a dump of this rank or device exists."""
        ...

    def newest_stamp(self) -> int:
        """Return the largest time stamp of that dump."""
        ...


class RankLocation:
    """A tree by rank, net, graph and iteration."""

    def __init__(self, tree: Tree, *, root_graphs: bool) -> None:
        self.tree = tree
        self.root = tree.rank_path
        self.owner = f"rank_{tree.rank}"
        self._root_graphs = root_graphs

    def directory(self, event: TaskEvent, moment: Moment) -> str:
        """Return the directory of the operator's tensors."""
        return self.tree.data(self.graph_id(event), moment.number)

    def graph_id(self, event: TaskEvent) -> int:
        """Return the number of the root graph or of the kernel graph."""
        return event.root_graph_id if self._root_graphs else event.graph_id

    def exists(self) -> bool:
        """Return whether a dump of the rank exists."""
        return self.tree.exists()

    def newest_stamp(self) -> int:
        """Return the largest time stamp of that dump."""
        return newest_stamp(self.root)


class ModelLocation:
    """A tree by step, time, device, model and iteration."""

    def __init__(self, tree: ModelTree) -> None:
        self.tree = tree
        self.root = tree.root
        self.owner = f"device_{tree.device_id}"
        self._began_ns: int | None = None  # GE takes the time once, ACL in each step, since it is configured again

    def directory(self, event: TaskEvent, moment: Moment) -> str:
        """Return the directory of the operator's tensors."""
        if self._began_ns is None or self.tree.step_level:
            self._began_ns = moment.time_ns or event.time_ns
        time_ns = self._began_ns
        if event.graph_id == NO_GRAPH:
            return self.tree.singles(time_ns)
        return self.tree.data(moment.number, time_ns, event.model_name, event.model_id, moment.run)

    def graph_id(self, event: TaskEvent) -> int:
        """Return the number of the kernel graph."""
        return event.graph_id

    def exists(self) -> bool:
        """Return whether a dump of the device exists."""
        return self.tree.exists()

    def newest_stamp(self) -> int:
        """Return the largest time stamp of that dump."""
        return self.tree.newest_stamp()


def locate(profile: Profile, request: DumpRequest, info: SessionInfo) -> RankLocation | ModelLocation:
    """Return the tree of a run."""
    if profile.tree == "model":
        tree = ModelTree(path=request.path, device_id=info.device_id, step_level=profile.step_level)
        return ModelLocation(tree)
    ranks = Tree(path=request.path, rank=info.rank, net_name=request.net_name)
    return RankLocation(ranks, root_graphs=profile.graph_level == "root")
