"""The log of a dump's writes: counts, entries of the manifest, failures."""

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
    """Counts writes, and records them for the manifest; failures are handled according to the profile."""

    def __init__(self, *, profile: Profile, tally: Tally, root: str, manifest: bool, log: Log) -> None:
        self.tally = tally
        self.log = log
        self._profile = profile
        self._root = root
        self._manifest = manifest
        self._spool: Spool | None = None

    def attempt(self, action: Callable[[], object]) -> bool:
        """Run an action that writes; return whether it succeeded.

        A failure ends the run, or is logged and counted, according to the profile. [decisions: unwritable path]
        """
        try:
            action()
        except DumpWriteError as error:
            self.failed(error)
            return False
        return True

    def failed(self, error: DumpWriteError) -> None:
        """Count a failure, and end the run or log it, according to the profile."""
        self.tally.fail(f"not everything is written: {error.where} {error.what}")
        if self._profile.unwritable == "error":
            raise error
        self.log("ERROR", "DumpToFile", str(error))

    def relative(self, directory: str) -> str:
        """Return a directory relative to the dump's root."""
        return directory[len(self._root) + 1 :]

    def add(self, directory: str, name: str, source: Source, ref: TensorRef) -> None:
        """Record a written tensor, with the device's own ids and address, which its name does not have."""
        self.tally.tensors += 1
        if self._manifest:
            self._note(directory, name, source, ref, ref.version)

    def add_readers(self, directory: str, name: str, source: Source, refs: Sequence[tuple[TensorRef, Reader]]) -> None:
        """Record written tensors of a planned graph."""
        self.tally.tensors += len(refs)
        if self._manifest:
            for ref, reader in refs:
                self._note(directory, name, source, ref, reader.version)

    def _note(self, directory: str, name: str, source: Source, ref: TensorRef, version: int) -> None:
        ids = (source.task_id, source.stream_id, ref.address, version)
        path = f"{self.relative(directory)}/{name}"
        self.spool().add(path, source.full_name, *ids, ref.device_format, ref.producer)

    def spool(self) -> "Spool":
        """Return the entries for the manifest."""
        if self._spool is None:
            from dumpsim.dump.manifest import Spool

            self._spool = Spool()
        return self._spool
