"""The dump of one rank: listens to the device and writes what the config asks for."""

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dumpsim.archive.sink import DiskFaults, Sink
from dumpsim.archive.tree import Tree, newest_stamp
from dumpsim.core.clock import Clock, VirtualClock
from dumpsim.core.errors import BadInputError, DumpConfigError, DumpWriteError
from dumpsim.core.events import GraphEvent, RunEvent, TaskEvent, TensorRef
from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.dump import decide
from dumpsim.dump.artefacts import (
    arguments_file,
    check_target,
    check_types,
    tensor_constants,
    write_graph,
    write_metadata,
)
from dumpsim.dump.control import DumpControl
from dumpsim.dump.convert import convert
from dumpsim.dump.iteration import IterationCounter
from dumpsim.dump.measure import is_finite
from dumpsim.dump.pipeline import Pipeline, Source
from dumpsim.dump.summary import Summary, Tally
from dumpsim.modes.config import DumpConfig
from dumpsim.modes.configfile import load, read_file, require_supported
from dumpsim.modes.profile import Profile, find

__all__ = ["DumpService", "SessionInfo", "start"]

Log = Callable[[str, str, str], None]
_CHECKED = ("float16", "float32", "bfloat16")  # outputs that overflow detection looks at [spec mindspore 5.1]
_READ_ONCE = ("MINDSPORE_DUMP_CONFIG", "MS_DIAGNOSTIC_DATA_PATH")


def _silent(level: str, function: str, text: str) -> None:
    """No log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """What the dump must know of the session that it listens to.

    Attributes
    ----------
    target, chip, jit_level : str
        ``Ascend``, ``GPU`` or ``CPU``; name of the chip; ``O0``, ``O1`` or ``O2``.
    rank, device_id : int
    release : str
        ``seed``, ``2.7`` or ``2.10``.
    clock : Clock
        Where time stamps come from.
    settings : RunSettings
        Overrides of the profile, manifest, append.
    disk : DiskFaults or None
        Asked before every write.
    control : DumpControl
        What the script says to the dump while it runs.
    lifetimes : callable
        Life times of the device's tensors, for the manifest; objects with the attributes of `manifest.BufferEntry`.
    log : callable
        Gets level (``WARNING``, ``ERROR``), the vendor's function and the text.
    """

    target: str
    clock: Clock
    chip: str = ""
    jit_level: str = "O0"
    rank: int = 0
    device_id: int = 0
    release: str = "seed"
    settings: RunSettings = field(default_factory=RunSettings)
    disk: DiskFaults | None = None
    control: DumpControl = field(default_factory=DumpControl)
    lifetimes: Callable[[], Iterable[object]] = tuple
    log: Log = _silent


def start(info: SessionInfo, environment: Mapping[str, str]) -> "DumpService | None":
    """The dump that the environment asks for, None where it asks for none.

    Parameters
    ----------
    info : SessionInfo
    environment : mapping
        ``MINDSPORE_DUMP_CONFIG``, ``MS_DIAGNOSTIC_DATA_PATH``, ``MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT``.

    Raises
    ------
    DumpConfigError
        For a config that the vendor refuses.
    BadInputError
        For a directory that already holds this rank's dump, under the virtual clock and without ``--append``.
    DumpWriteError
        For a directory that cannot be written, where the profile says so.
    UnsupportedError
        For modes that are not emulated.
    """
    found = read_file(environment)
    if found is None:
        return None
    file, text = found
    profile = find(info.release, info.target, info.settings.overrides)
    require_supported(profile, info.jit_level, environment)
    config, warnings = load(text, environment, profile, device_id=info.device_id, file=file)
    for warning in warnings:
        info.log("WARNING", warning.function, warning.text)
    if environment.get("ENABLE_MS_GE_DUMP") == "1":
        info.log("WARNING", "", "ENABLE_MS_GE_DUMP has no effect: it belongs to Ascend with jit_level O2")
    return DumpService(info, profile, config, environment)


class DumpService:
    """A `Tap` that dumps.

    Examples
    --------
    >>> import json, tempfile
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
        self.tree = Tree(path=config.path, rank=info.rank, net_name=config.net_name)
        self._environment = {name: environment.get(name) for name in _READ_ONCE}
        self._sink = Sink(file_mode=profile.file_mode, directory_mode=profile.directory_mode, disk=info.disk)
        self._iterations = IterationCounter(profile.iteration_rule, config.initial_iteration)
        self._keep_useless = self._useless_rule(environment)
        self._selected: dict[tuple[str, str], bool] = {}
        self._used: set[str] = set()  # elements of `kernels` that matched something
        self._told: set[str] = set()  # variables whose late change was told
        self._held: dict[int, TensorRef] = {}  # operands kept from before an in-place kernel that may overflow
        self._logged_iteration: int | None = None
        self._overflows = 0
        self._capturing = False
        self._ran = False
        self._step = config.initial_iteration
        self._finished: Summary | None = None
        self._pipeline = Pipeline(
            profile=profile, config=config, tree=self.tree, sink=self._sink, tally=self.tally, clock=info.clock,
            seed=info.settings.seed, manifest=info.settings.manifest is not None, log=info.log,
        )  # fmt: skip
        if config.disabled is not None:
            self.tally.fail(f"nothing is dumped: {config.disabled}")
        else:
            self._prepare()
            if not config.enable and profile.target == "Ascend":
                self.tally.note("asynchronous dump (enable: false): each tensor was copied when its task ended")
        self._begin_step()

    # -- what the front end asks ---------------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether the config dumps anything on this device."""
        return self.config.disabled is None

    def compile_options(self, options: CompileOptions) -> CompileOptions:
        """What this dump wants of compilation: every tensor keeps its memory, as synchronous dump needs. [spec
        mindspore 12.1]"""
        return replace(options, memory_reuse=False) if self.enabled else options

    def refuse_sink(self) -> None:
        """A data sink is about to feed the graphs.

        Raises
        ------
        DumpConfigError
            Where the profile cannot dump its steps. [seed 001]
        """
        if self.enabled and self.profile.sink_error:
            raise DumpConfigError(
                "a data sink hides its steps from the dump",
                where="dataset_sink_mode",
                allowed=("False",),
                vendor="e2e_dump is not supported on GPU with dataset_sink_mode=True",
                code="DS-DMP-003",
            )

    # -- Tap -----------------------------------------------------------------------------------------------------------

    def wants(self, event: TaskEvent | GraphEvent | RunEvent) -> bool:
        """Whether the event matters; a task in an iteration that is not dumped costs one comparison."""
        if not isinstance(event, TaskEvent):
            return self.enabled
        if not self._capturing:
            return False
        if self.config.dump_mode == 0:
            return True
        key = (event.full_name, str(event.attrs.get("dump", "")) if self.config.dump_mode == 2 else "")
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = decide.is_selected(self.config, event.full_name, event.attrs)
            self._use(event.full_name)
        return found

    def graph_compiled(self, event: GraphEvent) -> None:
        """Write the graph's files."""
        if self.profile.complex_numbers == "error":
            check_types(event.doc)
        if self.profile.heterogeneous == "error":
            check_target(event.doc, self.profile.target)
        self._guarded(lambda: write_graph(self._sink, self.tree, event))
        if self.profile.constants:
            directory = self.tree.constants(event.graph_id)
            if not os.path.isdir(directory):
                for ref in tensor_constants(event):
                    self._pipeline.constant(directory, ref, event.graph_id)

    def run_begin(self, event: RunEvent) -> None:
        """Number the run, and log it where the profile keeps a history."""
        dataset = event.kind == "dataset"
        if dataset:
            self.refuse_sink()
        self._warn_of_late_changes()
        self._iterations.begin(event.root_graph_id, dataset=dataset)
        number = self._begin_step()
        for text in self.config.steps.oversized:
            self.info.log("ERROR", "CheckStoul", f"Out of Range error: stoul when parse {text}")
        self._ran = self._ran or not dataset
        if dataset or not self._capturing:
            return
        self.tally.iterations.add(number)
        if self.profile.global_order and number != self._logged_iteration:
            self._logged_iteration = number
            name = self.tree.history(event.graph_id)
            self._guarded(lambda: self._sink.append(self.tree.execution_order, name, f"{number}\n"))

    def run_end(self, event: RunEvent) -> None:
        """Write the Parameter files of the run, and advance."""
        dataset = event.kind == "dataset"
        number = self._step
        if self._capturing and not dataset:
            chosen = decide.choose_parameters(self.config, self.profile, event.parameters)
            for ref in event.parameters:
                self._use(ref.name)
            for _, reason in chosen.skipped:
                self.tally.skip(reason)
            directory = self.tree.data(event.graph_id, number)
            for ref in chosen.wanted:
                self._pipeline.parameter(directory, ref, event.graph_id, number)
        self._sink.settle()
        self._iterations.end(event.root_graph_id, dataset=dataset)
        self._begin_step()

    def before_task(self, event: TaskEvent) -> None:
        """Inputs, where the profile reads them before the kernel may overwrite them."""
        if self.profile.inplace != "before" or not self._dumps_kernels:
            return
        if self.config.op_debug_mode == 0:
            self._inputs(event)
        elif self.config.op_debug_mode == 3:
            self._held = {ref.slot: _copied(ref) for ref in event.operands if _overlaps(ref, event.outputs)}

    def after_task(self, event: TaskEvent) -> None:
        """Outputs, and inputs where they were not read before."""
        mode = self.config.op_debug_mode
        if not self._dumps_kernels:
            if mode == 4:
                text = f"Abnormal dump is not supported on {self.profile.target} backend."
                self.info.log("WARNING", "CPUDataDump", text)
            return
        if mode == 4:
            if event.error is not None:
                self.info.log("ERROR", "DumpDataForException", f"Sync stream failed at {event.full_name}")
                self._inputs(event, exception=True)
            return
        if event.error is not None:
            return
        if mode == 3:
            held, self._held = self._held, {}
            if not self._overflowed(event):
                return
            operands = tuple(held.get(ref.slot, ref) for ref in event.operands)
            event = replace(event, operands=operands)
            self._inputs(event)
        elif self.profile.inplace == "after":
            self._inputs(event)
        self._outputs(event)
        if self.config.save_kernel_args and self.profile.kernel_arguments and self.config.enable:
            name, data = arguments_file(event.full_name, event.arguments, event.attrs)
            self._guarded(lambda: self._sink.write(self._directory(event), name, [data]))

    # -- end -----------------------------------------------------------------------------------------------------------

    def finish(self) -> Summary:
        """Close the dump: warn of kernels that matched nothing, write the manifest, count. Calling it again changes
        nothing."""
        if self._finished is not None:
            return self._finished
        self._sink.settle()
        self._report_unused()
        if self.enabled and not self.tally.asked and not self.tally.failed:
            self.tally.note(self._why_nothing())
        summary = self.tally.summary(
            path=self.tree.rank_path, rank=self.info.rank, written=self._sink.written, following=self._following()
        )
        self._finished = summary
        if self.info.settings.manifest is not None:
            self._write_manifest(summary, self.info.settings.manifest)
        return summary

    # -- inside --------------------------------------------------------------------------------------------------------

    @property
    def _dumps_kernels(self) -> bool:
        """quirk: op_debug_mode 4 off Ascend saves Parameter files only, 3 saves everything. [spec mindspore 1.2]"""
        return self.config.op_debug_mode != 4 or self.profile.exception_inputs

    def _begin_step(self) -> int:
        """Number the step that comes, and see whether its tasks are dumped."""
        control = self.info.control
        self._step = self._iterations.current if control.user_step is None else control.user_step
        asked = control.running if control.dynamic else self._step in self.config.steps
        self._capturing = self.enabled and asked
        return self._step

    def _directory(self, event: TaskEvent) -> str:
        graph = event.root_graph_id if self.profile.graph_level == "root" else event.graph_id
        return self.tree.data(graph, self._step)

    def _source(self, event: TaskEvent, io: str) -> Source:
        graph = event.root_graph_id if self.profile.graph_level == "root" else event.graph_id
        return Source(
            op_type=event.op_type,
            full_name=event.full_name,
            io=io,
            task_id=event.task_id,
            stream_id=event.stream_id,
            rank=self.info.rank,
            graph_id=graph,
            iteration=self._step,
        )

    def _inputs(self, event: TaskEvent, *, exception: bool = False) -> None:
        if not (self.config.inputs or exception):
            return
        chosen = decide.choose_inputs(self.profile, event.op_type, event.operands)
        self._dump(event, "input", chosen)

    def _outputs(self, event: TaskEvent) -> None:
        if not self.config.outputs:
            return
        chosen = decide.choose_outputs(self.profile, event.op_type, event.outputs, useless=self._keep_useless)
        self._dump(event, "output", chosen)

    def _dump(self, event: TaskEvent, io: str, chosen: decide.Selection) -> None:
        for _, reason in chosen.skipped:
            self.tally.skip(reason)
        if chosen.wanted:
            self._use(event.full_name)
            source, directory = self._source(event, io), self._directory(event)
            for ref in chosen.wanted:
                self._pipeline.tensor(directory, source, ref)

    def _overflowed(self, event: TaskEvent) -> bool:
        """op_debug_mode 3: whether an output holds an infinity or a NaN; everywhere but on Ascend, always."""
        if not self.profile.overflow_check:
            return True
        limit = self.config.overflow_number
        if limit and self._overflows >= limit:
            return False
        chosen = decide.choose_outputs(self.profile, event.op_type, event.outputs, useless=self._keep_useless)
        for ref in chosen.wanted:
            if ref.dtype.name in _CHECKED and not is_finite(convert(ref, self._pipeline.plain).values):
                self._overflows += 1
                return True
        return False

    def _prepare(self) -> None:
        """Look at the directory before the first step. [decisions: a run never goes on blind]"""
        rank_path = self.tree.rank_path
        if os.path.isdir(rank_path) and os.listdir(rank_path):
            if isinstance(self.info.clock, VirtualClock) and not self.info.settings.append:
                raise BadInputError(
                    "already holds a dump of this rank, whose names this run would write again",
                    where=rank_path,
                    allowed=("another path", "an empty directory", "--append", "--clock wall"),
                    nearest="--append",
                    code="DS-DMP-001",
                )
            resume = getattr(self.info.clock, "resume_after", None)
            if resume is not None:
                resume(newest_stamp(rank_path))
        if self.profile.unwritable == "error":
            self._sink.make(rank_path)
            if not os.access(rank_path, os.W_OK | os.X_OK):
                raise DumpWriteError("cannot be written: permission denied", where=rank_path, code="DS-ARC-010")
        if self.profile.metadata:
            self._guarded(
                lambda: write_metadata(
                    self._sink, self.tree, self.profile.target, self.profile.ms_version, self.config.text, self.info.log
                )
            )

    def _guarded(self, action: Callable[[], object]) -> None:
        """Write something beside tensors; a failure ends the run or is logged, as the profile says."""
        self._pipeline.guarded(action)

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

    def _use(self, name: str) -> None:
        """Remember which elements of `kernels` matched something."""
        rule = self.config.kernels.match(name) if self.config.dump_mode == 1 else None
        if rule is not None:
            self._used.add(rule.text)

    def _report_unused(self) -> None:
        """The vendor's warning."""
        if self.config.dump_mode != 1 or not self.enabled:
            return
        unused = {rule.text for rule in self.config.kernels.rules} - self._used
        for text in sorted(unused):
            self.info.log("WARNING", "PrintUnusedKernel", f"[DataDump] Unused Kernel in json: {text}")

    def _why_nothing(self) -> str:
        """A reason for an empty dump."""
        if self.info.control.dynamic and not self.tally.iterations:
            return "nothing was dumped: no graph ran between _dump_start and _dump_stop"
        if self.config.steps.never:
            return f"nothing was dumped: iteration {self.config.steps.text!r} matches nothing"
        if not self._ran:
            return "nothing was dumped: no graph ran"
        if not self.tally.iterations:
            return "nothing was dumped: no graph ran in an iteration that the config asks for"
        if self.config.op_debug_mode == 3:
            return "nothing was dumped: no operator overflowed"
        if self.config.op_debug_mode == 4:
            return "nothing was dumped: no operator failed"
        if self.config.dump_mode == 2:
            return "nothing was dumped: no operator carries the mark of set_dump"
        if self.config.dump_mode == 1:
            return "nothing was dumped: kernels matches no operator"
        return "nothing was dumped: no kernel ran"

    def _following(self) -> str:
        """The command that shows the dump, or that explains why there is none."""
        where = shlex.quote(self.config.path.rstrip("/"))
        if not (self.tally.tensors or self.tally.rows):
            release = "" if self.profile.release == "seed" else f" --mindspore {self.profile.release}"
            fields = "".join(f" --set {shlex.quote(f'{k}={v}')}" for k, v in self.info.settings.overrides.items())
            return (
                f"dumpsim check {shlex.quote(self.config.file)} --device {self.profile.target.lower()}{release}{fields}"
            )
        if self.config.op_debug_mode == 3:
            return f"dumpsim stat {where} --bad"
        return f"dumpsim ls {where} --summary" if self.tally.tensors else f"dumpsim stat {where}"

    def _write_manifest(self, summary: Summary, path: str) -> None:
        """Write the manifest; the dump itself is complete whatever happens here."""
        from dumpsim.core.version import __version__
        from dumpsim.dump.manifest import BufferEntry, Manifest, path_for

        settings = self.info.settings
        self._pipeline.spool().finish(
            Manifest(
                dumpsim=__version__,
                profile=self.profile.name,
                target=self.info.target,
                chip=self.info.chip,
                jit_level=self.info.jit_level,
                rank=self.info.rank,
                device_id=self.info.device_id,
                clock=settings.clock,
                seed=settings.seed,
                overrides=dict(settings.overrides),
                config=self.config.file,
                path=summary.path,
                asked=summary.asked,
                captured=summary.captured,
                skipped=dict(summary.skipped),
                tensors=summary.tensors,
                rows=summary.rows,
                written_files=summary.files,
                written_bytes=summary.bytes,
                iterations=list(summary.iterations),
                notes=list(summary.notes),
                buffers=[BufferEntry.model_validate(found) for found in self.info.lifetimes()],
            ),
            path_for(path, self.info.rank),
        )


def _overlaps(ref: TensorRef, outputs: tuple[TensorRef, ...]) -> bool:
    """Whether a kernel writes into this operand."""
    end = ref.address + ref.nbytes
    return ref.address != 0 and any(out.address < end and ref.address < out.address + out.nbytes for out in outputs)


def _copied(ref: TensorRef) -> TensorRef:
    """The operand with its bytes of now."""
    data = ref.read().copy()
    return replace(ref, read=lambda: data)
