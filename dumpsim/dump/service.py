"""The dump of one rank: receives events of the device and writes the requested tensors."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from dumpsim.archive.claim import DirectoryClaim
from dumpsim.archive.sink import Sink
from dumpsim.core.clock import VirtualClock
from dumpsim.core.errors import BadInputError, DumpConfigError, DumpWriteError, ScriptValueError
from dumpsim.core.events import NO_GRAPH, GraphEvent, RunEvent, TaskEvent
from dumpsim.core.irdoc import IrDoc
from dumpsim.core.options import CompileOptions
from dumpsim.dump import decide, report
from dumpsim.dump.acljson import AclJson
from dumpsim.dump.artefacts import RankFiles, check_target, check_types
from dumpsim.dump.capture import Capture
from dumpsim.dump.graphplan import GraphDump
from dumpsim.dump.info import SessionInfo
from dumpsim.dump.iteration import Iteration, IterationCounter
from dumpsim.dump.location import ModelLocation, RankLocation, locate
from dumpsim.dump.operatorfiles import OperatorFiles
from dumpsim.dump.operatorstats import OperatorStatistics
from dumpsim.dump.overflowrecord import layout_of
from dumpsim.dump.selection import KernelChoice
from dumpsim.dump.summary import Summary, Tally
from dumpsim.dump.tensorfiles import TensorFiles
from dumpsim.dump.trigger import Every, left_to_cann, overlooks_saturation, trigger_of
from dumpsim.dump.unit import Unit
from dumpsim.dump.watch import WatchTrigger
from dumpsim.dump.writelog import WriteLog
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest

__all__ = ["DumpService", "SessionInfo"]


class DumpService:
    """A `Tap` that dumps.

    Parameters
    ----------
    info : SessionInfo
    profile : Profile
        The behaviour of the vendor's mode and release.
    request : DumpRequest
    sink : Sink, optional
        Receives the files; by default they are written to disk. A sink that only counts needs no directory.

    Raises
    ------
    BadInputError
        For a directory that already contains this rank's dump, under the virtual clock and without ``--append``.
    DumpWriteError
        For a directory that cannot be written, if that is an error in the profile.

    Examples
    --------
    >>> import tempfile
    >>> from dumpsim.core.settings import RunSettings
    >>> from dumpsim.modes.profile import find
    >>> info = SessionInfo(target="Ascend", clock=VirtualClock(), settings=RunSettings(manifest=None))
    >>> request = DumpRequest(path=tempfile.mkdtemp(), net_name="Net")
    >>> service = DumpService(info, find("seed", "ascend_o0"), request)
    >>> service.enabled, service.finish().asked
    (True, 0)
    """

    def __init__(self, info: SessionInfo, profile: Profile, request: DumpRequest, sink: Sink | None = None) -> None:
        self.info = info
        self.profile = profile
        self.request = request
        self.tally = Tally()
        binary = request.file_format == "bin"
        mode = profile.binary_mode if binary else profile.file_mode
        self._sink = sink or Sink(
            file_mode=mode, directory_mode=profile.directory_mode, disk=info.disk,
            durable=info.settings.durable, warn=self._warn,
        )  # fmt: skip
        self._claim: DirectoryClaim | None = None
        self._location = locate(profile, request, info)
        self._writes = WriteLog(
            profile=profile,
            tally=self.tally,
            root=self._location.root,
            manifest=info.settings.manifest is not None,
            log=info.log,
        )
        self._tensors = TensorFiles(
            profile=profile, request=request, sink=self._sink, writes=self._writes, clock=info.clock,
            seed=info.settings.seed, rank=info.rank,
        )  # fmt: skip
        unit: Unit = self._tensors
        if binary and request.statistics is not None:
            unit = OperatorStatistics(
                statistics=request.statistics, sink=self._sink, writes=self._writes, clock=info.clock
            )
        elif binary:
            unit = OperatorFiles(sink=self._sink, writes=self._writes, clock=info.clock)
        self._choice = KernelChoice(request.selection)
        self._capture = Capture(
            profile=profile, request=request, unit=unit, location=self._location, choice=self._choice,
            writes=self._writes, sink=self._sink, log=info.log, rank=info.rank,
            opdebug=layout_of(profile.opdebug, info.chip),
        )  # fmt: skip
        self._watch = WatchTrigger(self._capture, request.watches) if request.watches else None
        self._trigger = trigger_of(self._capture) if self._watch is None else self._watch
        self._whole = isinstance(self._location, ModelLocation)  # whether graphs run as models
        self._iteration = Iteration(
            IterationCounter(profile.iteration_rule, request.first_step),
            request.steps,
            info.control,
            enabled=self.enabled,
        )
        self._docs: dict[int, IrDoc] = {}  # the compiled graphs by id, for the script's lines
        self._models: set[int] = set()  # models that were loaded since the dump was set
        self._layers: dict[str, None] = {}  # selected operators of the compiled graphs, in their order
        self._ran = False
        self._finished: Summary | None = None
        self._files = self._rank_files()
        self._acl = self._acl_json()
        if request.disabled is not None:
            self.tally.fail(f"nothing is dumped: {request.disabled}")
        elif sink is None:
            self._prepare()
        else:
            self._begin_files()

    # -- for the front end ---------------------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether the request dumps anything on this device."""
        return self.request.disabled is None

    @property
    def exception_path(self) -> str | None:
        """Directory of CANN's exception dump if the request selects that, otherwise None."""
        requested = self.enabled and left_to_cann(self.request, self.profile)
        return self._location.root if requested else None

    def compile_options(self, options: CompileOptions) -> CompileOptions:
        """Return compile options for this dump: if it is synchronous, memory must not be reused. [spec mindspore
        12.1]"""
        reuse = not self.enabled or self.profile.memory_reuse or self.request.asynchronous
        return replace(options, memory_reuse=options.memory_reuse and reuse)

    def refuse_sink(self, size: int = 1) -> None:
        """Raise an error if the steps of a data sink cannot be dumped.

        Parameters
        ----------
        size : int
            Steps between two returns to the host.

        Raises
        ------
        DumpConfigError
            If the profile does not dump data sinks. [seed 001]
        ScriptValueError
            If the profile dumps only sinks of one step. [spec mindspore 3.3]
        """
        if not self.enabled:
            return
        if self.profile.sink == "error":
            raise DumpConfigError(
                "a data sink hides its steps from the dump",
                where="dataset_sink_mode",
                allowed=("False",),
                vendor="e2e_dump is not supported on GPU with dataset_sink_mode=True",
                code="DS-DMP-003",
            )
        if self.profile.sink == "one" and size != 1:
            raise ScriptValueError(
                f"the dump of whole graphs does not support a sink size of {size}",
                where="sink_size",
                allowed=("1",),
                nearest="1",
                vendor="when using acl dump in data sink mode, sink size must be 1",
                code="DS-DMP-006",
            )

    def reselect(self, request: DumpRequest) -> None:
        """Use the selection of another request for models that are loaded from now on."""
        self.request = replace(self.request, selection=request.selection, text=request.text, file=request.file)
        self._choice.reselect(request.selection)

    @property
    def _logs_kernels(self) -> bool:
        """Whether the history is written for the graph of the first dumped kernel, as on a CPU. [spec vendor 2.12]"""
        return self.profile.target == "CPU"

    # -- Tap -----------------------------------------------------------------------------------------------------------

    def wants(self, event: TaskEvent | GraphEvent | RunEvent) -> bool:
        """Return whether the dump needs an event; for iterations that are not dumped, this is one comparison."""
        if not isinstance(event, TaskEvent):
            return self.enabled
        if event.graph_id == NO_GRAPH:
            return self.enabled and self.request.singles
        if not self._iteration.capturing:
            return False
        if bool(event.model_id) is not self._whole:
            self.tally.note("operators of graphs of another jit_level are not dumped: the first graph's decides")
            return False
        if self.request.dialect == "acl" and event.model_id not in self._models:
            self.tally.note(f"nothing of {event.model_name} is dumped: it was loaded before the dump was set")
            return False
        return event in self._choice if self._watch is None else self._watch.concerns(event)

    def plan(self, events: Sequence[TaskEvent]) -> GraphDump | None:
        """Plan the dump of a graph whose tasks are the same in every run, see `PlannedGraph`."""
        trigger, selection = self._trigger, self._choice.selection
        if not isinstance(trigger, Every) or self.request.asynchronous:
            return None
        return GraphDump(
            self, self._capture, trigger, self._iteration, lambda: self._choice.selection is selection, events
        )

    def graph_compiled(self, event: GraphEvent) -> None:
        """Write the graph's files."""
        nodes = event.doc.nodes if event.doc is not None else ()
        if event.doc is not None:
            self._docs[event.graph_id] = event.doc
        self._models.add(event.model_id)
        for text in (*self._choice.loaded(event), *(self._watch.loaded(event) if self._watch is not None else ())):
            self._warn(text)
        if self.profile.complex_numbers == "error":
            check_types(nodes)
        if self.profile.heterogeneous == "error":
            check_target(nodes, self.profile.target)
        if self._files is not None:
            self._files.graph(event, self._tensors)
        if self.enabled and self.request.selection.marked and self.request.selection.rules is None:
            for name, fused in event.lost_marks:
                text = f"the mark of set_dump on {name} is lost: {fused} fused it and is not dumped"
                self.info.log("WARNING", "", text)
                self.tally.note(text)
        if not self.request.selection.everything:
            marks = {node.full_name: dict((*node.primitive_attrs, *node.node_attrs)) for node in nodes}
            for name in event.execution_order:
                if self.request.selection.selects(name, marks.get(name, {})):
                    self._layers[name] = None

    def run_begin(self, event: RunEvent) -> None:
        """Number the run, and write it to the history if the profile has one."""
        dataset = event.kind == "dataset"
        if dataset:
            self.refuse_sink()
        for text in self.info.late_changes():
            self.info.log("WARNING", "", text)
        moment = self._iteration.begin(
            event.root_graph_id, run=event.run_count, time_ns=self.info.clock.now_ns, dataset=dataset
        )
        for text in self.request.steps.oversized:
            self.info.log("ERROR", "CheckStoul", f"Out of Range error: stoul when parse {text}")
        self._ran = self._ran or not dataset
        if dataset or not self._iteration.capturing:
            return
        self.tally.iterations.add(moment.number)
        if self._files is not None and not self._logs_kernels:
            self._files.run(event.graph_id, moment.number)
        if self._acl is not None:
            acl = self._acl
            self._writes.attempt(lambda: acl.step(moment.number, self._layers))

    def run_end(self, event: RunEvent) -> None:
        """Write the Parameter files of the run, and end the iteration."""
        dataset = event.kind == "dataset"
        if self._iteration.capturing and not dataset and self._files is not None:
            number = self._iteration.moment.number
            for graph_id, parameters in event.parameters.items():
                chosen = decide.choose_parameters(self.request, self.profile, parameters)
                for ref in parameters:
                    self._choice.use(ref.name)
                for _, reason in chosen.skipped:
                    self.tally.skip(reason)
                for ref in chosen.wanted:
                    self._tensors.parameter(self._files.tree.data(graph_id, number), ref, graph_id, number)
        self._writes.attempt(self._sink.settle)
        self._iteration.end(event.root_graph_id, dataset=dataset)

    def before_task(self, event: TaskEvent) -> None:
        """Handle the start of a selected kernel."""
        self.kernel_begins(event)
        self._trigger.before(event, self._iteration.moment)

    def kernel_begins(self, event: TaskEvent) -> None:
        """Write the run to the history if that is done by its first selected kernel."""
        # a dump of failures has no kernels on a CPU
        if self._files is not None and self._logs_kernels and self.request.trigger != "failure":
            self._files.run(event.graph_id, self._iteration.moment.number)

    def after_task(self, event: TaskEvent) -> None:
        """Handle the end of a selected kernel."""
        if event.overflow:
            self.tally.findings.overflow(event, self._location.graph_id(event), self._iteration.moment.number)
        self._trigger.after(event, self._iteration.moment)

    # -- end -----------------------------------------------------------------------------------------------------------

    def why_nothing(self) -> str:
        """Return why nothing was dumped so far; "" for a dump with tensors, or one that is disabled."""
        if not self.enabled or self.tally.asked or self.tally.failed or self.tally.elsewhere:
            return ""
        return report.why_nothing(self.request, self.info, self.tally, ran=self._ran)

    def finish(self) -> Summary:
        """End the dump: warn of kernels that matched nothing, write the manifest, and return the summary. A second call
        returns the same summary."""
        if self._finished is not None:
            return self._finished
        with suppress(DumpWriteError):  # it is counted and reported in the summary
            self._writes.attempt(self._sink.settle)
        for text in self._choice.unused() if self.enabled else ():
            self.info.log("WARNING", "PrintUnusedKernel", f"[DataDump] Unused Kernel in json: {text}")
        for text in (*self._choice.unknown(), *(self._watch.unused() if self._watch is not None else ())):
            self._warn(text)
        if reason := self.why_nothing():
            self.tally.note(reason)
        facts = self.tally.findings.facts(self._docs)
        summary = self.tally.summary(
            path=self._location.root,
            rank=self.info.rank,
            written=self._sink.written,
            facts=facts,
            following=report.following(self.request, self.profile, self.info, self.tally, facts),
        )
        self._finished = summary
        if self._claim is not None:
            self._claim.release()
        if self.info.settings.manifest is not None:
            manifest = report.manifest(self.request, self.profile, self.info, summary)
            self._writes.spool().finish(*manifest)
        return summary

    # -- private -------------------------------------------------------------------------------------------------------

    def _rank_files(self) -> RankFiles | None:
        """Return the writer of files beside tensors, if the tree has them."""
        if not isinstance(self._location, RankLocation):
            return None
        return RankFiles(
            self._location.tree, profile=self.profile, sink=self._sink, writes=self._writes, log=self.info.log
        )

    def _acl_json(self) -> AclJson | None:
        """Return the writer of ACL's file, if the profile has one."""
        if not (self.profile.acl_json and isinstance(self._location, ModelLocation)):
            return None
        return AclJson(self._location.tree, self.request, self._sink)

    def _warn(self, text: str) -> None:
        """Log a warning, and add it to the summary."""
        self.info.log("WARNING", "", text)
        self.tally.note(text)

    def _prepare(self) -> None:
        """Check the directory before the first step. [decisions: a run never goes on blind]"""
        root = self._location.root
        virtual = isinstance(self.info.clock, VirtualClock)
        if virtual:  # two runs would write files with the same names
            self._claim = DirectoryClaim.take(root, self._location.owner, self._sink, self.profile.unwritable)
        try:
            self._check_directory(root, virtual=virtual)
        except BaseException:
            if self._claim is not None:
                self._claim.release()
            raise

    def _check_directory(self, root: str, *, virtual: bool) -> None:
        """Refuse a directory that has a dump or cannot be written, and write the first files."""
        if self.info.settings.durable:
            self.tally.note("the files of this dump are on stable storage (--durable)")
        if self._location.exists():
            if virtual and not self.info.settings.append:
                raise BadInputError(
                    "already contains a dump of this rank, whose files this run would overwrite",
                    where=root,
                    allowed=("another path", "an empty directory", "--append", "--clock wall"),
                    nearest="--append",
                    code="DS-DMP-001",
                )
            resume = getattr(self.info.clock, "resume_after", None)
            if resume is not None:
                resume(self._location.newest_stamp())
        if self.profile.unwritable == "error":
            self._sink.make(root)
            if not os.access(root, os.W_OK | os.X_OK):
                raise DumpWriteError("cannot be written: permission denied", where=root, code="DS-ARC-010")
        self._begin_files()

    def _begin_files(self) -> None:
        """Write the first files, and warn if an overflow dump cannot find anything."""
        if self._files is not None:
            self._files.begin(self.request.text)
        if self._acl is not None:
            self._writes.attempt(self._acl.begin)
        if self.info.saturation and overlooks_saturation(self.request, self.profile):
            text = "the chip saturates: results are finite, so the overflow dump will find no operator"
            self._warn(text)
