"""``mindspore.profiler.profiler``: profiles that a script starts, steps and stops."""

import json
from collections.abc import Callable
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._profiling import record, release
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.profiler._parameters import Parameters, parameters
from dumpsim.frontends.mindspore.profiler.schedule import ProfilerAction
from dumpsim.profiling.output import write_analysis
from dumpsim.profiling.record import Profile as Recorded
from dumpsim.profiling.record import joined
from dumpsim.profiling.recorder import Recorder
from dumpsim.runtime.session import Session
from dumpsim.world.context import current

__all__ = ["Profile", "Profiler", "tensorboard_trace_handler"]

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class _Trace:
    """The recorded data, for ``on_trace_ready``."""

    def __init__(self, parameters: Parameters, recorded: Recorded, metadata: dict[str, Any]) -> None:
        self._parameters, self._recorded, self._metadata = parameters, recorded, metadata
        self.path = parameters.output_path
        self.worker = ""

    def analyse(
        self, pretty: bool = False, step_list: Any = None, mode: str = "sync", async_mode: bool = False, **_: Any
    ) -> None:
        """Write the results, immediately in every mode."""
        session = Session.current()
        write_analysis(
            self._recorded,
            self.path,
            worker=self.worker or f"dumpsim_{session.rank}",
            settings=self._parameters.settings(),
            metadata=self._metadata,
            operators=self._parameters.operators,
            operands=self._parameters.operands,
            metrics=self._parameters.metrics,
            pretty=pretty,
            steps=step_list,
            disk=session.disk,
            durable=session.settings.durable,
        )


def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False
) -> Callable[[Any], None]:
    """Return a function for ``on_trace_ready`` that writes the results.

    Parameters
    ----------
    dir_name : str, optional
        By default ``./data``.
    worker_name : str, optional
        Prefix of the directory's name; by default ``dumpsim_{rank}``.
    analyse_flag : bool
        If False, write nothing.
    async_mode : bool
        Without effect: results are always written before the call returns.
    """
    if dir_name is not None and (not isinstance(dir_name, str) or not dir_name):
        logger.warning("Invalid parameter dir_name, reset it to default.")
        dir_name = None
    if worker_name is not None and (not isinstance(worker_name, str) or not worker_name):
        logger.warning("Invalid parameter worker_name, reset it to default.")
        worker_name = None
    for name, value in (("analyse_flag", analyse_flag), ("async_mode", async_mode)):
        if not isinstance(value, bool):
            logger.warning(f"{name} is not bool, set by default.")

    def handler(prof_inst: Any) -> None:
        if analyse_flag is not False:
            if isinstance(prof_inst, _Trace):
                prof_inst.path = dir_name or "./data"
                prof_inst.worker = worker_name or ""
            prof_inst.analyse(async_mode=async_mode)

    return handler


class _Recording:
    """Base of the profilers: records in the steps of its schedule, or in all steps without one."""

    def __init__(self, parameters: Parameters, name: str) -> None:
        self._parameters = parameters
        self._name = name
        self._has_started = False
        self._metadata: dict[str, Any] = {}
        self._recorder: Recorder | None = None
        self._recorded: list[Recorded] = []
        self.step_num = 0
        self.current_action = self._action(0)
        if parameters.start:
            self.start()

    def _action(self, step: int) -> ProfilerAction:
        return ProfilerAction.RECORD if self._parameters.schedule is None else self._parameters.schedule(step)

    def start(self) -> None:
        """Start recording.

        Raises
        ------
        ScriptRuntimeError
            If another profile is being recorded.
        """
        if self._has_started:
            logger.warning(f"The {self._name.lower()} has already started. Do not turn on again in the open state.")
            return
        if self.current_action in _RECORDING:
            self._begin()
        self._has_started = True

    def _begin(self) -> None:
        recorder = Recorder()
        record(recorder)
        self._recorder = recorder
        current().at_close(self._close)
        self._mark()

    def _mark(self) -> None:
        if self._parameters.schedule is not None and self._recorder is not None:
            self._recorder.begin_step()

    def _end(self) -> None:
        """Stop recording and store the recorded data."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        current().cancel(self._close)
        if self._parameters.schedule is not None:
            recorder.end_step(self.step_num)
        found = release(recorder)
        if found is not None:
            self._recorded.append(found)

    def _close(self) -> None:
        """Stop the profiler when the rank ends."""
        if self._has_started:
            logger.warning(f"{self._name} is stopped at the end of the program.")
            self.stop()

    def stop(self) -> None:
        """Stop recording."""
        raise NotImplementedError

    def _ready(self) -> None:
        """Pass the recorded data to ``on_trace_ready``."""
        trace = self._taken()
        if trace is not None and self._parameters.on_trace_ready is not None:
            self._parameters.on_trace_ready(trace)

    def _taken(self) -> _Trace | None:
        recorded, self._recorded = self._recorded, []
        return _Trace(self._parameters, joined(recorded), dict(self._metadata)) if recorded else None

    def step(self) -> None:
        """Advance to the next step of the schedule."""
        if not self._has_started:
            logger.error(f"{self._name} is stopped, step takes no effect!")
            return
        if self._parameters.schedule is not None and self._recorder is not None:
            self._recorder.end_step(self.step_num)
        before = self.current_action
        self.step_num += 1
        self.current_action = self._action(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._end()
            self._ready()
        if self.current_action in _RECORDING and self._recorder is None:
            self._begin()
        else:
            self._mark()

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to ``profiler_metadata.json``."""
        if not isinstance(key, str) or not isinstance(value, str):
            logger.warning("The key and value of metadata must be string. Skip this metadata.")
            return
        self._add(key, value)

    def _add(self, key: str, value: Any) -> None:
        if key in self._metadata:
            logger.warning(f"{key} is already saved as metadata, override it.")
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a value, given as JSON text, to ``profiler_metadata.json``."""
        if not isinstance(key, str) or not isinstance(value, str):
            logger.warning("The key and value of metadata must be string. Skip this metadata.")
            return
        try:
            found = json.loads(value)
        except ValueError:
            logger.warning("The metadata value must be json format string. Skip this metadata")
            return
        self._add(key, found)

    def __enter__(self) -> Any:
        if not self._has_started:
            self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._has_started:
            self.stop()


class Profiler(_Recording):
    """A profiler that writes on request: by `analyse`, or with a schedule by ``on_trace_ready``.

    Parameters
    ----------
    start_profile : bool
        Start recording immediately; otherwise `start` does.
    output_path : str
        By default ``./data``.
    profiler_level : ProfilerLevel
        From level 1, kernels are reported with operands and AI Core metrics.
    activities : list of ProfilerActivity
        Without NPU, only the script's steps are reported.
    aic_metrics : AicoreMetrics
        One of the five groups of ``profiling_options``.
    schedule : Schedule, optional
    on_trace_ready : callable, optional
    **kwargs
        The other parameters of MindSpore 2.10, which must not request more data.

    Raises
    ------
    UnsupportedError
        For a parameter that requests data that is not emulated.
    """

    def __init__(self, **kwargs: Any) -> None:
        logger.warning(
            "'mindspore.Profiler' will be deprecated and removed in a future version. Please use the api "
            "'mindspore.profiler.profile' instead."
        )
        self._stepped = False
        super().__init__(parameters(kwargs), "Profiler")

    def stop(self) -> None:
        """Stop recording; with a schedule, pass the recorded data to ``on_trace_ready``."""
        if self._parameters.schedule is not None and not self._stepped:
            logger.warning("The profiler has schedule. Please use step() to collect data.")
            return
        if not self._has_started:
            logger.error("The profiler has not started. Do not turn off again in the closed state.")
            return
        self._has_started = False
        self._end()
        if self._parameters.schedule is not None:
            self._ready()

    def step(self) -> None:
        """Advance to the next step of the schedule; without a schedule, there are no steps."""
        if self._parameters.schedule is None:
            logger.error("With no schedule in the Profiler, step takes no effect!")
            return
        self._stepped = True
        super().step()

    def analyse(
        self, offline_path: Any = None, pretty: bool = False, step_list: Any = None, mode: str = "sync"
    ) -> None:
        """Stop, and write the data recorded since the last call."""
        if offline_path:
            raise UnsupportedError("offline analysis is not emulated", where="Profiler.analyse: offline_path")
        if self._has_started:
            self._has_started = False
            self._end()
        if self._parameters.schedule is not None:
            logger.warning("The profiler has schedule. Please use 'on_trace_ready' to analyse data.")
            return
        trace = self._taken()
        if trace is None:
            logger.warning("ProfilerInterface analyse failed, profiler has not been initialized.")
            return
        trace.analyse(pretty=pretty, step_list=step_list, mode=mode)

    @classmethod
    def offline_analyse(cls, *args: Any, **kwargs: Any) -> None:
        """Raise UnsupportedError: the run itself writes the results.

        Raises
        ------
        UnsupportedError
        """
        raise UnsupportedError("offline analysis is not emulated", where="Profiler.offline_analyse")

    def op_analyse(self, *args: Any, **kwargs: Any) -> None:
        """Raise UnsupportedError: see ``op_statistic.csv``.

        Raises
        ------
        UnsupportedError
        """
        raise UnsupportedError("op_analyse is not emulated; see op_statistic.csv", where="Profiler.op_analyse")


class Profile(_Recording):
    """``mindspore.profiler.profile``: a profiler that passes its data to ``on_trace_ready`` when it stops.

    Parameters
    ----------
    activities, start_profile, schedule, on_trace_ready
        As for `Profiler`.
    experimental_config : _ExperimentalConfig, optional
        Level, metrics and format.
    **kwargs
        ``with_stack``, ``profile_memory``, ``data_process``, ``parallel_strategy``, ``hbm_ddr``, ``pcie``,
        ``sync_enable`` and ``record_shapes``, which must not request more data.
    """

    def __init__(
        self,
        activities: Any = None,
        with_stack: bool = False,
        profile_memory: bool = False,
        data_process: bool = False,
        parallel_strategy: bool = False,
        start_profile: bool = True,
        hbm_ddr: bool = False,
        pcie: bool = False,
        sync_enable: bool = True,
        record_shapes: bool = False,
        schedule: Any = None,
        on_trace_ready: Any = None,
        experimental_config: Any = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(parameters(given), "profile")

    def stop(self) -> None:
        """Stop recording, and pass the recorded data to ``on_trace_ready``."""
        if not self._has_started:
            logger.error("The profile has not started. Do not turn off again in the closed state.")
            return
        self._has_started = False
        if self.current_action is ProfilerAction.WARM_UP:
            logger.warning(
                "Incorrect schedule: Stop profiler while current state is WARMUP which will result in empty parsed "
                "data."
            )
        elif self.current_action is ProfilerAction.RECORD and self._parameters.schedule is not None:
            logger.warning(
                "Incorrect schedule: Stop profiler while current state is RECORD which may result in incomplete "
                "parsed data."
            )
        elif self.current_action is ProfilerAction.RECORD_AND_SAVE:
            logger.warning(
                "Stop profiler while current state is RECORD_AND_SAVE, perhaps the scheduling cycle has not yet "
                "completed."
            )
        self._end()
        self._ready()


def __getattr__(name: str) -> Any:
    return vendored("mindspore.profiler.profiler", name)
