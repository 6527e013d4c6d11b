"""Checks of settings before a script or a test starts."""

from dumpsim.core.settings import RunSettings

__all__ = ["TARGETS", "check_settings"]

# device on the command line -> device_target of MindSpore
TARGETS = {"ascend": "Ascend", "gpu": "GPU", "cpu": "CPU"}


def check_settings(settings: RunSettings) -> None:
    """Check the chip against the device, the overrides against the profile, the fault plan, and orders of ranks.

    Raises
    ------
    BadInputError, FaultPlanError, UnsupportedError
        For the first invalid one.

    Examples
    --------
    >>> check_settings(RunSettings(chip="910D"))
    Traceback (most recent call last):
    dumpsim.core.errors.BadInputError: --chip: unknown chip '910D'; allowed: 910A, 910B, 910_93, 310P, GPU, CPU \
(did you mean '910B'?)
    """
    if settings.chip is not None:
        from dumpsim.device.chip import chip, chip_for

        if settings.device is None:
            chip(settings.chip)
        else:
            chip_for(TARGETS[settings.device], settings.chip)
    if settings.overrides:
        from dumpsim.modes.profile import find

        find(settings.mindspore, TARGETS[settings.device or "ascend"], settings.overrides)
    if settings.faults is not None:
        from dumpsim.device.faults import load_plan

        load_plan(settings.faults)
    if settings.reduce_order != "rank":
        from dumpsim.world.reduction import check_order

        check_order(settings.reduce_order, "--reduce-order")
    if settings.schedule != "rank":
        from dumpsim.world.hosts import turns

        turns(settings.schedule)
