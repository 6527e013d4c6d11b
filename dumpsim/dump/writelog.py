"""The log of what a dump writes: counts, entries of the manifest, failures."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dumpsim.core.errors import DumpWriteError
from dumpsim.core.events import Reader, TensorRef
from dumpsim.dump.info import Log
from dumpsim.dump.summary import Tally
from dumpsim.dump.unit import Source
from dumpsim.modes.profile import Profile

if TYPE_CHECKING:
    from dumpsim.dump.manifest import Spool

__all__ = ["WriteLog"]


class WriteLog:
    """Counts what is written and notes it for the manifest; a failure is handled as the profile says."""

    def __init__(self, *, profile: Profile, tally: Tally, root: str, manifest: bool, log: Log) -> None:
        self.tally = tally
        self.log = log
        self._profile = profile
        self._root = root
        self._manifest = manifest
        self._spool: Spool | None = None

    def attempt(self, action: Callable[[], object]) -> bool:
        """Write; a failure ends the run, or is logged and counted, as the profile says. [decisions: unwritable path]"""
        try:
            action()
        except DumpWriteError as error:
            self.failed(error)
            return False
        return True

    def failed(self, error: DumpWriteError) -> None:
        """Count a failure, and end the run or log it, as the profile says."""
        self.tally.fail(f"not everything is written: {error.where} {error.what}")
        if self._profile.unwritable == "error":
            raise error
        self.log("ERROR", "DumpToFile", str(error))

    def relative(self, directory: str) -> str:
        """A directory as the manifest names it."""
        return directory[len(self._root) + 1 :]

    def add(self, directory: str, name: str, source: Source, ref: TensorRef) -> None:
        """Note a written tensor: the device's own ids and addresses, which names do not tell."""
        self.tally.tensors += 1
        if self._manifest:
            self._note(directory, name, source, ref, ref.version)

    def add_places(self, directory: str, name: str, source: Source, refs: Sequence[tuple[TensorRef, Reader]]) -> None:
        """The same of tensors of a planned graph."""
        self.tally.tensors += len(refs)
        if self._manifest:
            for ref, place in refs:
                self._note(directory, name, source, ref, place.version)

    def _note(self, directory: str, name: str, source: Source, ref: TensorRef, version: int) -> None:
        ids = (source.task_id, source.stream_id, ref.address, version)
        path = f"{self.relative(directory)}/{name}"
        self.spool().add(path, source.full_name, *ids, ref.device_format, ref.producer)

    def spool(self) -> "Spool":
        """Entries for the manifest, kept until the end of the run."""
        if self._spool is None:
            from dumpsim.dump.manifest import Spool

            self._spool = Spool()
        return self._spool
