"""What the stable codes of our errors mean; ``dumpsim explain`` prints it.

Most codes of the config dialects (``DS-CFG-...``) stand in the dialects' own tables.
"""

from dataclasses import dataclass

__all__ = ["MEANINGS", "RUNTIME_CODES", "Meaning"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A code: what has happened, what helps, where the rule comes from, and how the vendor's message begins."""

    what: str
    help: str = ""
    source: str = ""
    says: tuple[str, ...] = ()


_M = Meaning
MEANINGS: dict[str, Meaning] = {
    # configs, where no row of a dialect tells
    "DS-CFG-013": _M(
        "path holds a character other than letters, digits, - _ and /; a dot is one.",
        "mktemp -d makes such names; take another directory.",
        "spec mindspore 1.2",
        ("Dump path only support alphabets",),
    ),
    "DS-CFG-014": _M("path is relative.", "", "spec mindspore 1.2", ("Dump path only support absolute path",)),
    "DS-CFG-057": _M(
        "dump_mode is 2 at O2, where set_dump does not reach every operator.",
        "GE fuses operators into one node, for example a convolution and its activation; the fused node has no mark "
        "and is not dumped. A run names each operator that lost its mark. Use O0 or O1, or dump_mode 1 with the name "
        "of the fused node.",
        "spec mindspore 2.3",
    ),
    "DS-CFG-041": _M(
        "statistic_category names a statistic that there is not.",
        "",
        "spec mindspore 4.1",
        ("The following statistic_category is invalid",),
    ),
    "DS-CFG-080": _M(
        "MINDSPORE_DUMP_CONFIG names a file that does not exist.",
        "",
        "spec mindspore 1.1",
        ("Get dump config file failed",),
    ),
    "DS-CFG-081": _M(
        "The config's file name has no suffix.",
        "It must end in .json.",
        "spec mindspore 1.1",
        ("Invalid json file name",),
    ),
    "DS-CFG-082": _M(
        "The config's file name ends in something else than .json, capitals included.",
        "",
        "spec mindspore 1.1",
        ("[DataDump] dump config file suffix only supports json",),
    ),
    "DS-CFG-083": _M("The config cannot be opened.", "", "spec mindspore 1.1", ("Dump file:",)),
    "DS-CFG-084": _M(
        "The config is not JSON: comments, trailing commas and single quotes are none.",
        "dumpsim check FILE shows line and column.",
        "spec mindspore 1.1",
        ("Parse dump json failed", "[json.exception.parse_error", "[json.exception.out_of_range"),
    ),
    # ACL configs: ADUMP's validator, then GE's
    "DS-ACL-001": _M(
        "An item of an ACL config is missing, empty or of another type.",
        "dumpsim check FILE --dialect acl shows all of them.",
        "spec ge 2.2",
        ("EP0001", "The content of configuration item"),
    ),
    "DS-ACL-002": _M("An item of an ACL config has a value that it does not take.", "", "spec ge 2.2", ("EP0002",)),
    "DS-ACL-003": _M(
        "A value of an ACL config breaks a rule of its item: a path, a step, the size of a list, a range.",
        "",
        "spec ge 2.2",
        ("EP0003",),
    ),
    "DS-ACL-004": _M("An ACL config is not JSON, or is nested too deeply.", "", "spec ge 2.2", ("EP0004",)),
    "DS-ACL-005": _M("Items of an ACL config exclude each other.", "", "spec ge 2.2", ("EP0005",)),
    "DS-ACL-006": _M(
        "GE refuses an ACL config that ADUMP, which looks at it first, has accepted.",
        "GE takes letters, digits and most punctuation in dump_path, but no blanks; it takes no dump_list with an "
        "overflow dump.",
        "spec ge 2, 8.10",
        ("100009",),
    ),
    "DS-ACL-007": _M("dump_path names another host, to which no dump is sent here.", "Use a directory.", "spec ge 2.4"),
    "DS-ACL-008": _M("An item of an ACL config is legal and changes nothing."),
    "DS-ACL-009": _M("A position of a blacklist is neither input nor output with a number; GE ignores it."),
    "DS-ACL-010": _M("An ACL config holds an item that does not exist; it is ignored."),
    "DS-ACL-011": _M("The file of an ACL config cannot be read."),
    "DS-ACL-012": _M("An ACL config was set on a device that is no Ascend.", "Use dumpsim run --device ascend."),
    # TorchAir's configuration
    "DS-TAR-001": _M("An option of CompilerConfig has a value that it does not take."),
    "DS-TAR-002": _M("CompilerConfig has no such option.", "", "", ("_DataDumpConfig has no option",)),
    "DS-TAR-003": _M(
        "A graph is compiled with other options of the process than the first graph.",
        "GE is initialised once: give all models of a process the same CompilerConfig, or use another process.",
        "spec aten 9.10",
        ("Unsupport twice initialtion",),
    ),
    "DS-TAR-004": _M(
        "ACL refuses the file that dump_config_path names.",
        "dumpsim check FILE --dialect acl shows everything that is wrong with it.",
        "spec ge 1.3",
        ("Fail in acl set dump",),
    ),
    "DS-TAR-005": _M(
        "A block of torchair.scope begins in one graph and ends in another.",
        "Move what breaks the graph out of the block.",
        "spec ge 1.6",
        ("After you call the torch.ops.air",),
    ),
    # reading dumps
    "DS-ANA-001": _M(
        "Values were asked of a tensor of which only statistics were dumped.",
        "Use the statistics, or dump with saved_data full.",
    ),
    "DS-ANA-002": _M("The path does not exist."),
    "DS-ANA-003": _M(
        "Nothing below the directory looks like a dump.", "Give the root of a dump or any directory inside one."
    ),
    "DS-ANA-004": _M("The file is none that a dump consists of."),
    "DS-FIL-001": _M(
        "A file of a dump, a config or a plan is a link, a pipe, a device, a directory, or too large; it was not read.",
        "Links are followed only where you name one yourself; name the file that it leads to.",
    ),
    "DS-FIL-002": _M("A line is longer than any that a dump holds; the file was not read any further."),
    "DS-FIL-003": _M("The file does not exist."),
    "DS-ARC-001": _M(
        "A file name does not follow the naming rule.",
        "A short number as name needs its line in mapping.csv.",
        "spec mindspore 3.4",
    ),
    "DS-CSV-001": _M("The first line is not the header of a statistic.csv."),
    "DS-CSV-002": _M(
        "A row is shorter than the header.", "The run may have ended while it wrote; rows before it are good."
    ),
    "DS-CSV-003": _M("A cell cannot be read as what its column holds."),
    "DS-NPY-001": _M(
        "The number type has no npy form; only its bits or its statistics can be saved.", "", "spec mindspore 3.5"
    ),
    "DS-NPY-002": _M("The npy file is damaged; the message gives the byte."),
    "DS-IR-001": _M("The text is not a graph: its first lines are missing."),
    "DS-IR-002": _M("A line among the graph's parameters is none."),
    "DS-IR-003": _M("A line of a graph is no node."),
    "DS-IR-004": _M("A comment that should name a source line does not."),
    "DS-IR-005": _M("A bracket of a graph's text is never closed."),
    "DS-IR-006": _M("A type of a graph's text is not known."),
    "DS-IR-007": _M("A node has another number of types than of shapes."),
    "DS-IR-008": _M("A type of a graph's text names an unknown number type."),
    "DS-IR-009": _M("A shape of a graph's text cannot be read."),
    "DS-IR-011": _M("The protobuf file is not a graph of the dump.", "", "spec mindspore 8.2"),
    "DS-RPL-001": _M("The text form of a GE graph breaks off or has a value without a field."),
    # writing dumps
    "DS-ARC-010": _M(
        "The directory of the dump cannot be written.",
        "A run never goes on blind; the profile field unwritable=log goes on as releases do.",
        "decisions",
    ),
    "DS-ARC-011": _M(
        "The manifest cannot be written; the dump itself is whole.", "--manifest PATH, or --manifest none."
    ),
    "DS-ARC-012": _M(
        "Another process is writing a dump into the same directory; the two would overwrite each other's files.",
        "Another path for each run, or wait until the other one has ended.",
    ),
    "DS-LIN-001": _M(
        "A file ends within a line, as a killed run leaves it; everything before that line is used.",
        "run --append cuts such a line off before it goes on.",
    ),
    "DS-DMP-001": _M(
        "The directory already holds this rank's dump, and the virtual clock would give the same names again.",
        "Another path, --append to continue it, or --clock wall.",
    ),
    "DS-DMP-002": _M(
        "The graph has complex tensors, which this release's dump refuses at compile.",
        "--set complex_numbers=save",
        "spec mindspore 8.2",
    ),
    "DS-DMP-003": _M("Dump on a GPU does not go together with a data sink.", "dataset_sink_mode=False", "seed 001"),
    "DS-DMP-004": _M(
        "Operators of two kinds of devices in one net cannot be dumped.",
        "--set heterogeneous=allowed dumps those of the main device.",
        "seed 001",
    ),
    "DS-DMP-005": _M(
        "The dump of whole graphs and the lite exception dump exclude each other.",
        'ascend_config={"exception_dump": "1"}',
        "decisions",
    ),
    "DS-DMP-006": _M("The dump of whole graphs follows data sinks of one step only.", "sink_size=1", "seed 001"),
    "DS-EXC-001": _M(
        "Core files of the AI Core are not emulated.", "ASCEND_DUMP_SCENE=aic_err_norm_dump", "spec ge 2.9"
    ),
    # values, types, layouts
    "DS-ANA-006": _M("The bytes of a tensor in a bin file are not those of its type, shape and layout."),
    "DS-ANA-007": _M("A bin file holds a type whose values cannot be told from the bytes; raw() gives the bytes."),
    "DS-ANA-008": _M("A bin file of Opdebug has another number of outputs than one.", "", "spec mindspore 5.2"),
    "DS-ANA-010": _M("A comparison on several machines needs Dask.", "pip install dumpsim[dask]"),
    "DS-ANA-020": _M("A manifest cannot be read.", "It lies beside the dump and is written whole at the end of a run."),
    "DS-ARC-003": _M(
        "A dump that a run should continue holds a time stamp after which there is no room for another.",
        "Look at the named file: such a stamp is forged or damaged.",
    ),
    "DS-ARC-002": _M("The name is none that a dump gives to a file."),
    "DS-BIN-001": _M("The header of a bin file cannot be read; the message has the offset.", "", "spec ge 3.1"),
    "DS-BIN-002": _M("There is no such number type in the headers of bin files.", "", "spec ge 3.3"),
    "DS-BIN-003": _M("There is no such layout in the headers of bin files.", "", "spec ge 3.3"),
    "DS-CFG-021": _M("GE does not take the steps that iteration names.", "all, or 0|5-8 in rising order"),
    "DS-CFG-070": _M("The release has no dump of whole graphs.", "--mindspore seed or --set o2=present", "decisions"),
    "DS-CFG-090": _M("The field has no effect on this device, or beside the others."),
    "DS-CFG-091": _M("No release knows the field."),
    "DS-CSV-011": _M("GE has no such statistic."),
    "DS-CSV-012": _M("A line of a file of operator statistics cannot be read; the message has its number."),
    "DS-FMT-001": _M("There is no such layout."),
    "DS-FMT-002": _M("There is no such dialect of layout rules.", "mindspore or ge"),
    "DS-OVF-001": _M("An Opdebug record has no such unit or field.", "", "spec mindspore 5.2"),
    "DS-OVF-002": _M("An Opdebug record is cut short."),
    "DS-OVF-003": _M("The unit that an Opdebug record names is unknown.", "", "spec mindspore 5.2"),
    "DS-OVF-004": _M("The JSON form of an Opdebug record cannot be read."),
    "DS-CST-001": _M("The bytes and the shape do not belong together."),
    "DS-CST-002": _M("The number type has no such rounding."),
    "DS-CST-003": _M("A value does not fit the packed type."),
    "DS-DIG-001": _M("There is no such digest.", "md5 or sha1"),
    "DS-FMT-003": _M("The length of the innermost block (C0) does not fit the layout.", "", "spec mindspore 10.1"),
    "DS-FMT-004": _M("The number of groups does not fit the layout or the channels.", "", "spec mindspore 10.4"),
    "DS-FMT-005": _M("The shape does not fit the layout."),
    "DS-FMT-006": _M("A layout of recurrent cells needs input_size and hidden_size.", "", "spec mindspore 10.2"),
    "DS-FMT-007": _M("There is no conversion between these two layouts."),
    "DS-FMT-008": _M(
        "Elements of this size have no device layout; 1, 2, 4 and 8 bytes have.", "", "spec mindspore 10.1"
    ),
    "DS-FMT-009": _M("The layout is a name in the vendors' lists; no index rule of it is documented."),
    "DS-FMT-010": _M("The array that should take the result cannot."),
    "DS-FMT-011": _M("The bytes are not as many as the layout of this shape has."),
    "DS-SIMD-001": _M("DUMPSIM_SIMD asks for instructions that this CPU lacks, or that do not exist."),
    "DS-THR-001": _M("The number of threads is not a whole number from 1 to 256."),
    "DS-STA-001": _M("Device statistics have the precisions high and low only.", "", "spec mindspore 4.4"),
    "DS-TYP-001": _M("There is no such number type."),
    "DS-TYP-002": _M("The operation does not exist for this number type."),
    # the machine
    "DS-DEV-001": _M(
        "The device has no room for the tensors; the message shows who holds what.",
        "A smaller batch, memory reuse (asynchronous dump), or another chip.",
    ),
    "DS-DEV-002": _M("No stream can go on and work is left; the message says who waits for whom."),
    "DS-DEV-003": _M(
        "The hardware stopped a kernel; it is seen at the next synchronisation.",
        "op_debug_mode 4 saves the inputs of the operator.",
        "spec parallel 4.5",
    ),
    "DS-DEV-004": _M("The number type cannot lie in the emulated device's memory."),
    "DS-DEV-005": _M("A weight has no value that could be copied to the device."),
    "DS-DEV-006": _M(
        "Another rank has failed, and this one waited for it in a collective or for an event.",
        "The other rank's own error is the cause of this one.",
    ),
    "DS-DEV-007": _M(
        "Two tasks of different streams use the same memory, or one group's links, and no event orders them; looked "
        "for with --check-races.",
        "Wait for the handle of an asynchronous collective before its tensor is written or its result is read.",
    ),
    "DS-ENG-001": _M(
        "The engine knows types and shapes only, and something needs the values of a tensor.",
        "Run with --engine numpy, or leave out what reads values: print(loss), Print, TensorDump, a dump.",
    ),
    "DS-FLT-001": _M("The fault plan does not follow its schema.", "dumpsim check --schema faults"),
    "DS-FLT-002": _M("The fault plan cannot be read."),
    "DS-FLT-003": _M("The fault plan is not JSON."),
    "DS-FLT-004": _M("The fault plan names a tensor, an output or an element that the program does not have."),
    # scripts and commands
    "DS-API-001": _M("The real package has this name and the emulation does not."),
    "DS-EMU-001": _M("The emulation has no module of this name, nor has the real MindSpore 2.10."),
    "DS-EMU-002": _M("The real package has this name and the emulation does not.", "", "troubleshooter 1.0.17"),
    # API dump
    "DS-API-010": _M("The path is no API dump, or it does not say which rank is meant."),
    "DS-API-011": _M("Files of state_dicts are read by torch.", "pip install dumpsim[torch]"),
    "DS-API-012": _M("The result of a comparison cannot be written."),
    "DS-API-013": _M("An argument of a comparison has the wrong type.", "", "spec api_dump 1.10"),
    "DS-API-014": _M("Too many calls without a counterpart for the mapping of 1.0.17.", "leave compat out"),
    "DS-API-015": _M("An argument of a comparison has a value that is not known.", "", "spec api_dump 1.10"),
    "DS-API-016": _M("A pair of API names that nobody can read.", "write Torch.foo: Functional.bar"),
    "DS-ADP-001": _M("An info or stack file of an API dump cannot be read; the message holds the line."),
    "DS-ADP-002": _M("The name is not that of a record of an API dump.", "NN_Linear_0_forward_output is one."),
    "DS-ADP-010": _M("An argument of an API dump has the wrong type.", "", "spec api_dump 1.10"),
    "DS-ADP-011": _M(
        "mode or dump_type is not known.", "", "spec api_dump 1.10", ("For parameter 'mode'", "For parameter 'support_")
    ),
    "DS-ADP-012": _M("scope does not fit the mode.", "", "spec api_dump 1.10", ("For 'api_dump_start',",)),
    "DS-ADP-013": _M("The API dump has been closed.", "Call api_dump_init again."),
    "DS-ADP-014": _M("output_path is None.", "", "spec api_dump 1.10", ("set_dump_path",)),
    "DS-ADP-015": _M(
        "api_dump_start or api_dump_stop before api_dump_init.", "", "spec api_dump 1.10", ("You must call",)
    ),
    "DS-ADP-016": _M("An argument of api_dump_init, its coverage or compat, is not known, or two do not go together."),
    "DS-ADP-017": _M(
        "The network is of no known framework.",
        "Import the framework first; a class of yours must inherit from its Module or Cell.",
        "spec api_dump 1.10",
        ("For 'troubleshooter.api_dump.init'",),
    ),
    "DS-GRD-001": _M("The operator has no gradient."),
    "DS-GRD-002": _M("The gradient of this control flow is not emulated."),
    "DS-OPS-001": _M("The operator is not emulated."),
    "DS-PRO-001": _M("--set names a field that profiles do not have."),
    "DS-PRO-002": _M("--set gives a field a value that it cannot have."),
    "DS-PRO-003": _M("There is no such release or device."),
    "DS-RUN-001": _M("The script does not exist."),
    "DS-RUN-002": _M("dumpsim run was given neither a script nor a module."),
    "DS-RUN-003": _M("--set takes FIELD=VALUE."),
    "DS-RUN-004": _M("There is no such device."),
    "DS-RUN-005": _M("dumpsim check was given no config."),
    "DS-RUN-006": _M("The config cannot be read."),
    "DS-RUN-007": _M("There is no such schema."),
    "DS-RUN-008": _M("The file of --config or the directory of --manifest does not exist."),
    "DS-RUN-009": _M("dumpsim explain knows nothing of the word."),
    "DS-RUN-010": _M("dumpsim has no such command.", "dumpsim --help lists them."),
    "DS-RUN-011": _M("An option of dumpsim msrun, or of ranks, has a value that it cannot have."),
    "EI0001": _M("An environment variable of HCCL has a value that it cannot have."),
    "EI0002": _M(
        "A rank has waited for another one in a collective for longer than HCCL_EXEC_TIMEOUT, or that one is gone.",
        "The message names the rank that was waited for: its own error, if it has one, is the cause. Where dumps make "
        "one rank slow, raise HCCL_EXEC_TIMEOUT or let all ranks dump alike.",
        "seed 001; spec parallel 3.5",
    ),
    "EI0005": _M(
        "The ranks of a group call different collectives, or the same one with other types, shapes or arguments.",
        "The message shows both sides and where they are in the script.",
        "spec parallel 3.5",
    ),
    "EI0006": _M(
        "In the first collective of its type in a group, a rank did not come within HCCL_CONNECT_TIMEOUT, or is gone.",
        "The message names it; compilation and data sets that differ between ranks are common causes.",
        "spec parallel 3.5",
    ),
    "EI0015": _M(
        "Ranks of the job have not come: the message names those that have and those that have not.",
        "See the logs of the missing ranks; HCCL_CONNECT_TIMEOUT and MS_TOPO_TIMEOUT say how long it is waited.",
        "spec parallel 3.5",
    ),
    "EI0004": _M("The rank table cannot be read: what is named is missing or has no meaning."),
    "EI0014": _M("The parts of the rank table do not fit together, or not to the job."),
    "EI0019": _M("The port of the scheduler is in use.", "--master_port chooses another one."),
    "DS-TST-001": _M("The marker npu has a setting or a value that does not exist.", "pytest --markers lists them."),
    "DS-TST-002": _M("dump_dir.configure was given a field that no dump config has, or a value that is no JSON."),
    "DS-TST-003": _M("The fixture golden was given something that it cannot compare."),
    "DS-TST-004": _M(
        "The marker ranks or the fixture world is used in a way that does not exist.",
        "@pytest.mark.ranks(4) runs a test on four ranks; world.run(function, 4) runs one function on them.",
    ),
    "DS-TST-005": _M(
        "A rank of a test waits for ranks that will not come.",
        "All ranks of a test have to make the same calls of world.barrier, world.gather and golden, in one order.",
    ),
    "DS-TST-006": _M(
        "A worker of pytest-xdist that is a rank has ended, or runs another test than the other ranks.",
        "Under --dumpsim-ranks=xdist every worker has to collect the same tests in the same order.",
    ),
}

# codes of the vendor's runtime that scripts see in error texts [spec parallel 4.5]
RUNTIME_CODES: dict[int, str] = {
    107002: "the context is empty",
    107003: "the stream is not in the context",
    107019: "a wait took longer than its time-out",
    107020: "a task took longer than its time-out",
    107022: "a task of the device was aborted",
    207001: "host memory could not be allocated",
    207003: "an AI Core task overflowed; MindSpore only warns",
    207016: "a vector core task overflowed",
    207017: "a task overflowed",
    207018: "device memory could not be allocated",
    507000: "an internal error",
    507002: "the task queue of the stream is full",
    507010: "the device gives no heartbeat",
    507011: "a model failed to execute",
    507012: "a report did not come in time",
    507014: "an AI Core task took longer than its time-out",
    507015: "an AI Core task failed",
    507016: "an AI Core task was trapped",
    507017: "an AI CPU task took longer than its time-out",
    507018: "an AI CPU task failed",
    507019: "the AI CPU's answer to a data dump was an error",
    507034: "a vector core task took longer than its time-out",
    507035: "a vector core task failed",
    507036: "a vector core task was trapped",
    507042: "a task was trapped by an out-of-bounds read or write",
    507043: "a task was trapped by an out-of-bounds read or write",
    507044: "a task was trapped by an out-of-bounds read or write",
    507045: "a task was trapped by an out-of-bounds read or write",
    507046: "a stream took longer to synchronise than its time-out",
    507047: "an event took longer to synchronise than its time-out",
    507048: "an FFTS+ task took longer than its time-out",
    507049: "an FFTS+ task failed",
    507050: "an FFTS+ task was trapped",
    507053: "device memory has a fault",
    507054: "device memory has an error that its code cannot correct",
    507056: "a link between devices failed",
    507057: "a remote device is suspect",
    507899: "an internal error of the driver",
    507900: "an internal error of the AI CPU",
    507904: "the retry of a collective failed",
}
