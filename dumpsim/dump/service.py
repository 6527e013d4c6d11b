"""The dump of one rank: listens to the device and writes what the config asks for."""

import os
from collections.abc import Mapping
from dataclasses import replace

from dumpsim.archive.sink import Sink
from dumpsim.core.clock import VirtualClock
from dumpsim.core.errors import BadInputError, DumpConfigError, DumpWriteError, ScriptValueError
from dumpsim.core.events import NO_GRAPH, GraphEvent, RunEvent, TaskEvent
from dumpsim.core.options import CompileOptions
from dumpsim.dump import account, decide
from dumpsim.dump.acljson import AclJson
from dumpsim.dump.artefacts import RankFiles, check_target, check_types
from dumpsim.dump.capture import Capture
from dumpsim.dump.info import SessionInfo
from dumpsim.dump.iteration import Iteration, IterationCounter
from dumpsim.dump.ledger import Ledger
from dumpsim.dump.location import ModelLocation, RankLocation, locate
from dumpsim.dump.operatorfiles import OperatorFiles
from dumpsim.dump.overflowrecord import layout_of
from dumpsim.dump.selection import KernelChoice
from dumpsim.dump.summary import Summary, Tally
from dumpsim.dump.tensorfiles import TensorFiles
from dumpsim.dump.unit import Unit
from dumpsim.dump.watch import watch
from dumpsim.modes.config import DumpConfig
from dumpsim.modes.configfile import load, read_file
from dumpsim.modes.profile import Profile, device_of, find

__all__ = ["DumpService", "SessionInfo", "start"]

_READ_ONCE = ("MINDSPORE_DUMP_CONFIG", "MS_DIAGNOSTIC_DATA_PATH")
_GE = "ENABLE_MS_GE_DUMP"


def start(info: SessionInfo, environment: Mapping[str, str]) -> "DumpService | None":
    """The dump that the environment asks for, None where it asks for none.

    Parameters
    ----------
    info : SessionInfo
    environment : mapping
        ``MINDSPORE_DUMP_CONFIG``, ``MS_DIAGNOSTIC_DATA_PATH``, ``MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT``,
        ``ENABLE_MS_GE_DUMP``.

    Raises
    ------
    DumpConfigError
        For a config that the vendor refuses.
    BadInputError
        For a directory that already holds this rank's dump, under the virtual clock and without ``--append``.
    DumpWriteError
        For a directory that cannot be written, where the profile says so.
    UnsupportedError
        For modes that the release has no more.
    """
    found = read_file(environment)
    if found is None:
        return None
    file, text = found
    ge = environment.get(_GE) == "1"
    profile = find(info.release, device_of(info.target, info.jit_level, ge=ge), info.settings.overrides)
    config, warnings = load(text, environment, profile, device_id=info.device_id, file=file)
    for warning in warnings:
        info.log("WARNING", warning.function, warning.text)
    if ge and profile.dialect != "graph":
        info.log("WARNING", "", f"{_GE} has no effect: it belongs to Ascend with jit_level O2")
    if profile.dialect == "graph" and info.exception_dump == "2":
        raise DumpConfigError(
            "the lite exception dump and the dump of whole graphs exclude each other",
            where='set_context(ascend_config={"exception_dump": "2"})',
            allowed=("0", "1"),
            nearest="1",
            code="DS-DMP-005",
        )
    return DumpService(info, profile, config, environment)


class DumpService:
    """A `Tap` that dumps.

    Examples
    --------
    >>> import json, tempfile
    >>> from dumpsim.core.settings import RunSettings
    >>> root = tempfile.mkdtemp()
    >>> config = {"common_dump_settings": {"dump_mode": 0, "path": root, "net_name": "Net", "iteration": "all",
    ...           "input_output": 0, "kernels": [], "support_device": [0]}, "e2e_dump_settings": {"enable": True}}
    >>> with open(root + "/dump.json", "w") as file:
    ...     json.dump(config, file)
    >>> service = start(SessionInfo(target="Ascend", clock=VirtualClock(), settings=RunSettings(manifest=None)),
    ...                 {"MINDSPORE_DUMP_CONFIG": root + "/dump.json"})
    >>> service.profile.name, service.config.net_name, service.finish().asked
    ('seed/ascend_o0', 'Net', 0)
    """

    def __init__(self, info: SessionInfo, profile: Profile, config: DumpConfig, environment: Mapping[str, str]) -> None:
        self.info = info
        self.profile = profile
        self.config = config
        self.tally = Tally()
        self._environment = {name: environment.get(name) for name in _READ_ONCE}
        mode = profile.binary_mode if config.binary else profile.file_mode
        self._sink = Sink(file_mode=mode, directory_mode=profile.directory_mode, disk=info.disk)
        self._location = locate(profile, config, info)
        self._ledger = Ledger(
            profile=profile,
            tally=self.tally,
            root=self._location.root,
            manifest=info.settings.manifest is not None,
            log=info.log,
        )
        self._tensors = TensorFiles(
            profile=profile, config=config, sink=self._sink, ledger=self._ledger, clock=info.clock,
            seed=info.settings.seed, rank=info.rank,
        )  # fmt: skip
        unit: Unit = self._tensors
        if config.binary:
            unit = OperatorFiles(sink=self._sink, ledger=self._ledger, clock=info.clock)
        self._choice = KernelChoice(config)
        self._capture = Capture(
            profile=profile, config=config, unit=unit, location=self._location, choice=self._choice,
            ledger=self._ledger, sink=self._sink, log=info.log, rank=info.rank,
            opdebug=layout_of(profile.opdebug, info.chip), useless=self._useless_rule(environment),
        )  # fmt: skip
        self._watch = watch(self._capture)
        self._whole = isinstance(self._location, ModelLocation)  # graphs that run as models have a tree of their own
        self._iteration = Iteration(
            IterationCounter(profile.iteration_rule, config.initial_iteration),
            config.steps,
            info.control,
            enabled=self.enabled,
        )
        self._told: set[str] = set()  # variables whose late change was told
        self._layers: dict[str, None] = {}  # selected operators of the compiled graphs, in their order
        self._ran = False
        self._finished: Summary | None = None
        self._files = self._rank_files()
        self._acl = self._acl_json()
        if config.disabled is not None:
            self.tally.fail(f"nothing is dumped: {config.disabled}")
        else:
            self._prepare()

    # -- what the front end asks ---------------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether the config dumps anything on this device."""
        return self.config.disabled is None

    @property
    def exception_path(self) -> str | None:
        """Where the dump of an exception goes that CANN makes for this config, None where the config asks for none."""
        lite = self.config.op_debug_mode == 4 and self.profile.exception == "lite"
        return self._location.root if lite and self.enabled else None

    def compile_options(self, options: CompileOptions) -> CompileOptions:
        """What this dump wants of compilation: a synchronous one needs every tensor to keep its memory. [spec
        mindspore 12.1]"""
        reuse = not self.enabled or self.profile.memory_reuse or self.config.asynchronous
        return replace(options, memory_reuse=options.memory_reuse and reuse)

    def refuse_sink(self, size: int = 1) -> None:
        """A data sink is about to feed the graphs.

        Parameters
        ----------
        size : int
            Steps between two returns to the host.

        Raises
        ------
        DumpConfigError
            Where the profile cannot dump its steps. [seed 001]
        ScriptValueError
            Where it can dump sinks of one step only. [spec mindspore 3.3]
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
                f"the dump of whole graphs sees one step of {size}",
                where="sink_size",
                allowed=("1",),
                nearest="1",
                vendor="when using acl dump in data sink mode, sink size must be 1",
                code="DS-DMP-006",
            )

    # -- Tap -----------------------------------------------------------------------------------------------------------

    def wants(self, event: TaskEvent | GraphEvent | RunEvent) -> bool:
        """Whether the event matters; a task in an iteration that is not dumped costs one comparison."""
        if not isinstance(event, TaskEvent):
            return self.enabled
        if not self._iteration.capturing or event.graph_id == NO_GRAPH:
            return False
        if bool(event.model_id) is not self._whole:
            self.tally.note("operators of graphs of another jit_level are not dumped: the first graph's decides")
            return False
        return event in self._choice

    def graph_compiled(self, event: GraphEvent) -> None:
        """Write the graph's files."""
        nodes = event.doc.nodes if event.doc is not None else ()
        if self.profile.complex_numbers == "error":
            check_types(nodes)
        if self.profile.heterogeneous == "error":
            check_target(nodes, self.profile.target)
        if self._files is not None:
            self._files.graph(event, self._tensors)
        if self.config.dump_mode != 0:
            marks = {node.full_name: dict((*node.primitive_attrs, *node.node_attrs)) for node in nodes}
            for name in event.execution_order:
                if decide.is_selected(self.config, name, marks.get(name, {})):
                    self._layers[name] = None

    def run_begin(self, event: RunEvent) -> None:
        """Number the run, and log it where the profile keeps a history."""
        dataset = event.kind == "dataset"
        if dataset:
            self.refuse_sink()
        self._warn_of_late_changes()
        moment = self._iteration.begin(
            event.root_graph_id, run=event.run_count, time_ns=self.info.clock.now_ns, dataset=dataset
        )
        for text in self.config.steps.oversized:
            self.info.log("ERROR", "CheckStoul", f"Out of Range error: stoul when parse {text}")
        self._ran = self._ran or not dataset
        if dataset or not self._iteration.capturing:
            return
        self.tally.iterations.add(moment.number)
        if self._files is not None:
            self._files.run(event, moment.number)
        if self._acl is not None:
            acl = self._acl
            self._ledger.guarded(lambda: acl.step(moment.number, self._layers))

    def run_end(self, event: RunEvent) -> None:
        """Write the Parameter files of the run, and advance."""
        dataset = event.kind == "dataset"
        if self._iteration.capturing and not dataset and self._files is not None:
            chosen = decide.choose_parameters(self.config, self.profile, event.parameters)
            for ref in event.parameters:
                self._choice.use(ref.name)
            for _, reason in chosen.skipped:
                self.tally.skip(reason)
            number = self._iteration.moment.number
            for ref in chosen.wanted:
                self._tensors.parameter(self._files.tree.data(event.graph_id, number), ref, event.graph_id, number)
        self._sink.settle()
        self._iteration.end(event.root_graph_id, dataset=dataset)

    def before_task(self, event: TaskEvent) -> None:
        """A selected kernel is about to run."""
        self._watch.before(event, self._iteration.moment)

    def after_task(self, event: TaskEvent) -> None:
        """A selected kernel has run."""
        self._watch.after(event, self._iteration.moment)

    # -- end -----------------------------------------------------------------------------------------------------------

    def finish(self) -> Summary:
        """Close the dump: warn of kernels that matched nothing, write the manifest, count. Calling it again changes
        nothing."""
        if self._finished is not None:
            return self._finished
        self._sink.settle()
        for text in self._choice.unused() if self.enabled else ():
            self.info.log("WARNING", "PrintUnusedKernel", f"[DataDump] Unused Kernel in json: {text}")
        if self.enabled and not (self.tally.asked or self.tally.failed or self.tally.elsewhere):
            self.tally.note(account.why_nothing(self.config, self.info, self.tally, ran=self._ran))
        summary = self.tally.summary(
            path=self._location.root,
            rank=self.info.rank,
            written=self._sink.written,
            following=account.following(self.config, self.profile, self.info, self.tally),
        )
        self._finished = summary
        if self.info.settings.manifest is not None:
            manifest = account.manifest(self.config, self.profile, self.info, summary)
            self._ledger.spool().finish(*manifest)
        return summary

    # -- inside --------------------------------------------------------------------------------------------------------

    def _rank_files(self) -> RankFiles | None:
        """The files beside tensors, where the tree has them."""
        if not isinstance(self._location, RankLocation):
            return None
        return RankFiles(
            self._location.tree, profile=self.profile, sink=self._sink, ledger=self._ledger, log=self.info.log
        )

    def _acl_json(self) -> AclJson | None:
        """The file for ACL, where the profile has one."""
        if not (self.profile.acl_json and isinstance(self._location, ModelLocation)):
            return None
        return AclJson(self._location.tree, self.config, self._sink)

    def _prepare(self) -> None:
        """Look at the directory before the first step. [decisions: a run never goes on blind]"""
        root = self._location.root
        if self._location.exists():
            if isinstance(self.info.clock, VirtualClock) and not self.info.settings.append:
                raise BadInputError(
                    "already holds a dump of this rank, whose names this run would write again",
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
        if self._files is not None:
            self._files.begin(self.config.text)
        if self._acl is not None:
            self._ledger.guarded(self._acl.begin)
        if self.info.saturation and self.config.op_debug_mode == 3 and self.profile.overflow_check == "finite":
            text = "the chip saturates: results are finite, so the overflow dump will find no operator"
            self.info.log("WARNING", "", text)
            self.tally.note(text)

    def _useless_rule(self, environment: Mapping[str, str]) -> bool:
        """MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT: whether useless outputs are kept. [spec mindspore 1.5]"""
        value = environment.get(decide.IGNORE_USELESS, "1")
        if value not in ("0", "1"):
            text = f"{decide.IGNORE_USELESS} should be 0 or 1, but got {value!r}; the default 1 is used"
            self.info.log("WARNING", "", text)
        return value == "0"

    def _warn_of_late_changes(self) -> None:
        """The variables were read at the first compile; a script that changes them later is told so. [decisions]"""
        for name, value in self._environment.items():
            if name not in self._told and os.environ.get(name, value) != value:
                self._told.add(name)
                if self.profile.release == "seed":
                    text = f"{name} was read before the first graph was compiled; changing it now has no effect"
                    self.info.log("WARNING", "", text)
