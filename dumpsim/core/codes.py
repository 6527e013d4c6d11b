"""Meanings of the stable error codes, which ``dumpsim explain`` prints.

Most codes of the config dialects (``DS-CFG-...``) are defined in the tables of the dialects.
"""

from dataclasses import dataclass

__all__ = ["MEANINGS", "RUNTIME_CODES", "Meaning"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a code: what happened, what helps, the source of the rule, how the vendor's message begins."""

    what: str
    help: str = ""
    source: str = ""
    says: tuple[str, ...] = ()


_M = Meaning
MEANINGS: dict[str, Meaning] = {
    # errors of configs that no row of a dialect describes
    "DS-CFG-013": _M(
        "path contains a character that is not allowed: only letters, digits, '-', '_' and '/' are. A dot is not.",
        "mktemp -d puts a dot into its names; use another directory.",
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
        "statistic_category contains an unknown statistic.",
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
        "The config's file name does not end in .json; the suffix must be in lower case.",
        "",
        "spec mindspore 1.1",
        ("[DataDump] dump config file suffix only supports json",),
    ),
    "DS-CFG-083": _M("The config cannot be opened.", "", "spec mindspore 1.1", ("Dump file:",)),
    "DS-CFG-084": _M(
        "The config is not valid JSON: comments, trailing commas and single quotes are not allowed.",
        "dumpsim check FILE shows line and column.",
        "spec mindspore 1.1",
        ("Parse dump json failed", "[json.exception.parse_error", "[json.exception.out_of_range"),
    ),
    # ACL configs: ADUMP's validator, then GE's
    "DS-ACL-001": _M(
        "An item of an ACL config is missing, empty or of another type.",
        "dumpsim check FILE --dialect acl lists all errors.",
        "spec ge 2.2",
        ("EP0001", "The content of configuration item"),
    ),
    "DS-ACL-002": _M("An item of an ACL config has an invalid value.", "", "spec ge 2.2", ("EP0002",)),
    "DS-ACL-003": _M(
        "A value of an ACL config breaks a rule of its item: a path, a step, the size of a list, a range.",
        "",
        "spec ge 2.2",
        ("EP0003",),
    ),
    "DS-ACL-004": _M("An ACL config is not JSON, or is nested too deeply.", "", "spec ge 2.2", ("EP0004",)),
    "DS-ACL-005": _M("Items of an ACL config exclude each other.", "", "spec ge 2.2", ("EP0005",)),
    "DS-ACL-006": _M(
        "GE rejects an ACL config that ADUMP, which checks it first, accepted.",
        "GE allows letters, digits and most punctuation in dump_path, but no spaces, and no dump_list together with "
        "an overflow dump.",
        "spec ge 2, 8.10",
        ("100009",),
    ),
    "DS-ACL-007": _M(
        "dump_path names another host; dumpsim writes local files only.", "Use a directory.", "spec ge 2.4"
    ),
    "DS-ACL-008": _M("An item of an ACL config is valid but has no effect."),
    "DS-ACL-009": _M("A position in a blacklist must be 'input' or 'output' followed by a number; GE ignores others."),
    "DS-ACL-010": _M("An ACL config contains an unknown item; it is ignored."),
    "DS-ACL-011": _M("The ACL config file cannot be read."),
    "DS-ACL-012": _M("An ACL config was set on a device other than Ascend.", "Use dumpsim run --device ascend."),
    # TorchAir's configuration
    "DS-TAR-001": _M("An option of CompilerConfig has an invalid value."),
    "DS-TAR-002": _M("CompilerConfig has no such option.", "", "", ("_DataDumpConfig has no option",)),
    "DS-TAR-003": _M(
        "A graph is compiled with process-wide options that differ from those of the first graph.",
        "GE is initialised once per process: use the same CompilerConfig for all models, or a separate process.",
        "spec aten 9.10",
        ("Unsupport twice initialtion",),
    ),
    "DS-TAR-004": _M(
        "ACL rejects the file named by dump_config_path.",
        "dumpsim check FILE --dialect acl lists all errors.",
        "spec ge 1.3",
        ("Fail in acl set dump",),
    ),
    "DS-TAR-005": _M(
        "A block of torchair.scope begins in one graph and ends in another.",
        "Move the code that breaks the graph out of the block.",
        "spec ge 1.6",
        ("After you call the torch.ops.air",),
    ),
    # reading dumps
    "DS-ANA-001": _M(
        "The values of a tensor were requested, but only its statistics were dumped.",
        "Use the statistics, or dump with saved_data full.",
    ),
    "DS-ANA-002": _M("The path does not exist."),
    "DS-ANA-003": _M("The directory does not contain a dump.", "Give the root of a dump or any directory inside one."),
    "DS-ANA-004": _M("The file is not part of any known dump format."),
    "DS-FIL-001": _M(
        "A file is a link, pipe, device or directory, or is too large; it was not read.",
        "Links are followed only if they are given on the command line; give the target of the link instead.",
    ),
    "DS-FIL-002": _M("A line is longer than a dump can contain; reading stopped there."),
    "DS-FIL-003": _M("The file does not exist."),
    "DS-ARC-001": _M(
        "A file name does not follow the naming rule.",
        "A file name that is only a number needs a line in mapping.csv.",
        "spec mindspore 3.4",
    ),
    "DS-CSV-001": _M("The first line is not the header of a statistic.csv."),
    "DS-CSV-002": _M(
        "A row is shorter than the header.", "The run may have ended during a write; the rows before it are valid."
    ),
    "DS-CSV-003": _M("A cell does not have the type of its column."),
    "DS-NPY-001": _M(
        "The number type cannot be stored in an npy file; only its bits or its statistics can be saved.",
        "",
        "spec mindspore 3.5",
    ),
    "DS-NPY-002": _M("The npy file is damaged; the message gives the byte offset."),
    "DS-IR-001": _M("The text is not a graph: the header is missing."),
    "DS-IR-002": _M("A line in the list of graph parameters cannot be parsed."),
    "DS-IR-003": _M("A line in the body of a graph cannot be parsed as a node."),
    "DS-IR-004": _M("A comment that should contain a source location cannot be parsed."),
    "DS-IR-005": _M("A bracket in the text of a graph is not closed."),
    "DS-IR-006": _M("The text of a graph contains an unknown type."),
    "DS-IR-007": _M("The numbers of types and shapes of a node differ."),
    "DS-IR-008": _M("The text of a graph contains an unknown number type."),
    "DS-IR-009": _M("The text of a graph contains a shape that cannot be parsed."),
    "DS-IR-011": _M("The protobuf file is not a graph dump.", "", "spec mindspore 8.2"),
    "DS-RPL-001": _M("The text of a GE graph is truncated or contains a value without a field."),
    # writing dumps
    "DS-ARC-010": _M(
        "The dump directory is not writable.",
        "The run stops. With --set unwritable=log it logs the error and continues, as MindSpore releases do.",
        "decisions",
    ),
    "DS-ARC-011": _M(
        "The manifest cannot be written; the dump itself is complete.", "Use --manifest PATH or --manifest none."
    ),
    "DS-ARC-012": _M(
        "Another process is writing a dump to the same directory; each would overwrite the other's files.",
        "Use a different path for each run, or wait until the other run ends.",
    ),
    "DS-LIN-001": _M(
        "The last line of a file is incomplete, as after a killed run; the lines before it are used.",
        "dumpsim run --append removes the incomplete line before it continues.",
    ),
    "DS-DMP-001": _M(
        "The directory already contains a dump of this rank, whose file names this run would use again.",
        "Use another path, --append to continue the dump, or --clock wall.",
    ),
    "DS-DMP-002": _M(
        "The graph contains complex tensors, which the dump of this release rejects when it compiles.",
        "--set complex_numbers=save",
        "spec mindspore 8.2",
    ),
    "DS-DMP-003": _M("Dump on a GPU does not support data sinks.", "dataset_sink_mode=False", "seed 001"),
    "DS-DMP-004": _M(
        "Networks with operators on two kinds of devices cannot be dumped.",
        "--set heterogeneous=allowed dumps those of the main device.",
        "seed 001",
    ),
    "DS-DMP-005": _M(
        "The dump of whole graphs and the lite exception dump cannot be used together.",
        'ascend_config={"exception_dump": "1"}',
        "decisions",
    ),
    "DS-DMP-006": _M("The dump of whole graphs supports data sinks with sink_size 1 only.", "sink_size=1", "seed 001"),
    "DS-EXC-001": _M(
        "Core files of the AI Core are not emulated.", "ASCEND_DUMP_SCENE=aic_err_norm_dump", "spec ge 2.9"
    ),
    # values, types, layouts
    "DS-ANA-006": _M("The size of a tensor in a bin file does not match its type, shape and layout."),
    "DS-ANA-007": _M("A bin file contains a type whose values cannot be decoded; raw() returns the bytes."),
    "DS-ANA-008": _M("A bin file of Opdebug must have exactly one output.", "", "spec mindspore 5.2"),
    "DS-ANA-010": _M("Comparing on several machines requires Dask.", "pip install dumpsim[dask]"),
    "DS-ANA-020": _M("A manifest cannot be read.", "It is next to the dump and is written when the run ends."),
    "DS-ARC-003": _M(
        "The dump to continue contains a time stamp so large that no later one is possible.",
        "Check the named file: the time stamp is damaged.",
    ),
    "DS-ARC-002": _M("The file name does not follow any naming rule of a dump."),
    "DS-BIN-001": _M("The header of a bin file cannot be parsed; the message gives the offset.", "", "spec ge 3.1"),
    "DS-BIN-002": _M("Unknown number type in the header of a bin file.", "", "spec ge 3.3"),
    "DS-BIN-003": _M("Unknown layout in the header of a bin file.", "", "spec ge 3.3"),
    "DS-CFG-021": _M(
        "GE does not accept the value of iteration.", "Use all, or steps in ascending order such as 0|5-8."
    ),
    "DS-CFG-070": _M(
        "This release does not support the dump of whole graphs.", "--mindspore seed or --set o2=present", "decisions"
    ),
    "DS-CFG-090": _M("The field has no effect on this device or in combination with other fields."),
    "DS-CFG-091": _M("Unknown field."),
    "DS-CSV-011": _M("Unknown statistic of GE."),
    "DS-CSV-012": _M("A line of an operator statistics file cannot be parsed; the message gives the line number."),
    "DS-FMT-001": _M("Unknown layout."),
    "DS-FMT-002": _M("Unknown dialect of layout rules.", "mindspore or ge"),
    "DS-OVF-001": _M("Unknown unit or field of an Opdebug record.", "", "spec mindspore 5.2"),
    "DS-OVF-002": _M("An Opdebug record is truncated."),
    "DS-OVF-003": _M("An Opdebug record names an unknown unit.", "", "spec mindspore 5.2"),
    "DS-OVF-004": _M("The JSON form of an Opdebug record cannot be parsed."),
    "DS-CST-001": _M("The number of bytes does not match the shape."),
    "DS-CST-002": _M("The rounding mode is not supported for this number type."),
    "DS-CST-003": _M("A value is out of range for the packed type."),
    "DS-DIG-001": _M("Unknown digest.", "md5 or sha1"),
    "DS-FMT-003": _M("The length of the innermost block (C0) does not fit the layout.", "", "spec mindspore 10.1"),
    "DS-FMT-004": _M("The number of groups does not fit the layout or the channels.", "", "spec mindspore 10.4"),
    "DS-FMT-005": _M("The shape does not fit the layout."),
    "DS-FMT-006": _M("A layout of recurrent cells needs input_size and hidden_size.", "", "spec mindspore 10.2"),
    "DS-FMT-007": _M("There is no conversion between these two layouts."),
    "DS-FMT-008": _M("Device layouts exist only for elements of 1, 2, 4 or 8 bytes.", "", "spec mindspore 10.1"),
    "DS-FMT-009": _M("The vendors list this layout but do not document its index rule."),
    "DS-FMT-010": _M("The out array does not have the right size or type, or is not writable."),
    "DS-FMT-011": _M("The number of bytes does not match the layout of this shape."),
    "DS-SIMD-001": _M("DUMPSIM_SIMD names an unknown instruction set, or one that this CPU does not have."),
    "DS-THR-001": _M("The number of threads must be an integer from 1 to 256."),
    "DS-STA-001": _M("The precision of device statistics must be high or low.", "", "spec mindspore 4.4"),
    "DS-TYP-001": _M("Unknown number type."),
    "DS-TYP-002": _M("The operation is not supported for this number type."),
    # the machine
    "DS-DEV-001": _M(
        "The device is out of memory; the message shows what is allocated.",
        "Use a smaller batch, memory reuse (asynchronous dump) or another chip.",
    ),
    "DS-DEV-002": _M(
        "Deadlock: no stream can proceed although work is left; the message shows what each one waits for."
    ),
    "DS-DEV-003": _M(
        "The device stopped a kernel; the error is reported at the next synchronisation.",
        "op_debug_mode 4 saves the inputs of the operator.",
        "spec parallel 4.5",
    ),
    "DS-DEV-004": _M("The emulated device cannot store this number type."),
    "DS-DEV-005": _M("A weight has no value to copy to the device."),
    "DS-DEV-006": _M(
        "Another rank failed while this one waited for it in a collective or for an event.",
        "See the error of the other rank, which is the cause of this one.",
    ),
    "DS-DEV-007": _M(
        "Two tasks of different streams use the same memory, or the links of one group, and no event orders them; "
        "reported with --check-races.",
        "Wait for the handle of an asynchronous collective before its tensor is written or its result is read.",
    ),
    "DS-ENG-001": _M(
        "The null engine knows types and shapes only, but the values of a tensor were requested.",
        "Run with --engine numpy, or remove what reads values: print(loss), Print, TensorDump, a dump.",
    ),
    "DS-FLT-001": _M("The fault plan does not follow its schema.", "dumpsim check --schema faults"),
    "DS-FLT-002": _M("The fault plan cannot be read."),
    "DS-FLT-003": _M("The fault plan is not JSON."),
    "DS-FLT-004": _M("The fault plan names a tensor, output or element that does not exist in the program."),
    # scripts and commands
    "DS-API-001": _M("The name exists in the real package but is not emulated."),
    "DS-EMU-001": _M("The module exists neither in the emulation nor in MindSpore 2.10."),
    "DS-EMU-002": _M("The name exists in the real package but is not emulated.", "", "troubleshooter 1.0.17"),
    # API dump
    "DS-API-010": _M("The path is not an API dump, or contains several ranks and does not name one."),
    "DS-API-011": _M("Reading a state_dict file requires torch.", "pip install dumpsim[torch]"),
    "DS-API-012": _M("The result of a comparison cannot be written."),
    "DS-API-013": _M("An argument of a comparison has the wrong type.", "", "spec api_dump 1.10"),
    "DS-API-014": _M("Too many calls have no counterpart for the mapping of release 1.0.17.", "Omit compat."),
    "DS-API-015": _M("An argument of a comparison has an unknown value.", "", "spec api_dump 1.10"),
    "DS-API-016": _M("A pair of API names cannot be parsed.", "Write Torch.foo: Functional.bar."),
    "DS-ADP-001": _M("An info or stack file of an API dump cannot be parsed; the message gives the line number."),
    "DS-ADP-002": _M(
        "The name is not a record name of an API dump.", "An example of a record name is NN_Linear_0_forward_output."
    ),
    "DS-ADP-010": _M("An argument of an API dump has the wrong type.", "", "spec api_dump 1.10"),
    "DS-ADP-011": _M(
        "mode or dump_type has an unknown value.",
        "",
        "spec api_dump 1.10",
        ("For parameter 'mode'", "For parameter 'support_"),
    ),
    "DS-ADP-012": _M("scope does not match the mode.", "", "spec api_dump 1.10", ("For 'api_dump_start',",)),
    "DS-ADP-013": _M("The API dump has been closed.", "Call api_dump_init again."),
    "DS-ADP-014": _M("output_path is None.", "", "spec api_dump 1.10", ("set_dump_path",)),
    "DS-ADP-015": _M(
        "api_dump_start or api_dump_stop was called before api_dump_init.", "", "spec api_dump 1.10", ("You must call",)
    ),
    "DS-ADP-016": _M("coverage or compat of api_dump_init has an unknown value, or two arguments cannot be combined."),
    "DS-ADP-017": _M(
        "The network does not belong to a known framework.",
        "Import the framework first; your class must inherit from its Module or Cell.",
        "spec api_dump 1.10",
        ("For 'troubleshooter.api_dump.init'",),
    ),
    "DS-GRD-001": _M("The operator has no gradient."),
    "DS-GRD-002": _M("The gradient of this control flow is not emulated."),
    "DS-OPS-001": _M("The operator is not emulated."),
    "DS-PRO-001": _M("--set names an unknown profile field."),
    "DS-PRO-002": _M("--set gives a profile field an invalid value."),
    "DS-PRO-003": _M("Unknown release or device."),
    "DS-RUN-001": _M("The script does not exist."),
    "DS-RUN-002": _M("dumpsim run was given neither a script nor a module."),
    "DS-RUN-003": _M("--set expects FIELD=VALUE."),
    "DS-RUN-004": _M("Unknown device."),
    "DS-RUN-005": _M("dumpsim check was given no config."),
    "DS-RUN-006": _M("The config cannot be read."),
    "DS-RUN-007": _M("Unknown schema."),
    "DS-RUN-008": _M("The file of --config or the directory of --manifest does not exist."),
    "DS-RUN-009": _M("dumpsim explain does not know the word."),
    "DS-RUN-010": _M("Unknown command.", "dumpsim --help lists them."),
    "DS-RUN-011": _M("An option of dumpsim msrun or of ranks has an invalid value."),
    "DS-RUN-012": _M(
        "The arguments of dumpsim plan cannot be combined, or it cannot plan this dump; the message says why."
    ),
    "EI0001": _M("An environment variable of HCCL has an invalid value."),
    "EI0002": _M(
        "A rank waited in a collective for longer than HCCL_EXEC_TIMEOUT for another rank, or that rank has ended.",
        "The message names the missing rank: its own error, if any, is the cause. If a dump slows down one rank, "
        "increase HCCL_EXEC_TIMEOUT or dump on all ranks.",
        "seed 001; spec parallel 3.5",
    ),
    "EI0005": _M(
        "The ranks of a group call different collectives, or the same one with different types, shapes or arguments.",
        "The message shows both calls and their lines in the script.",
        "spec parallel 3.5",
    ),
    "EI0006": _M(
        "In the first collective of its type in a group, a rank ended or did not arrive within HCCL_CONNECT_TIMEOUT.",
        "The message names it; compilation and data sets that differ between ranks are common causes.",
        "spec parallel 3.5",
    ),
    "EI0015": _M(
        "Some ranks of the job did not arrive; the message lists those that did and those that did not.",
        "See the logs of the missing ranks; HCCL_CONNECT_TIMEOUT and MS_TOPO_TIMEOUT set the time-outs.",
        "spec parallel 3.5",
    ),
    "EI0004": _M("The rank table is invalid: the named item is missing or has an invalid value."),
    "EI0014": _M("The rank table is inconsistent, or does not match the job."),
    "EI0019": _M("The port of the scheduler is in use.", "Choose another port with --master_port."),
    "DS-TST-001": _M("The marker npu has an unknown setting or an invalid value.", "pytest --markers lists them."),
    "DS-TST-002": _M("dump_dir.configure was given an unknown field, or a value that JSON cannot represent."),
    "DS-TST-003": _M("The fixture golden was given an object that it cannot compare."),
    "DS-TST-004": _M(
        "The marker ranks or the fixture world was used incorrectly.",
        "@pytest.mark.ranks(4) runs a test on four ranks; world.run(function, 4) runs one function on them.",
    ),
    "DS-TST-005": _M(
        "A rank of a test waits for ranks that will not arrive.",
        "All ranks of a test must call world.barrier, world.gather and golden in the same order.",
    ),
    "DS-TST-006": _M(
        "A pytest-xdist worker that is a rank has ended, or runs a different test from the other ranks.",
        "With --dumpsim-ranks=xdist every worker must collect the same tests in the same order.",
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
    507010: "the device sends no heartbeat",
    507011: "a model failed to execute",
    507012: "a report did not arrive in time",
    507014: "an AI Core task took longer than its time-out",
    507015: "an AI Core task failed",
    507016: "an AI Core task was trapped",
    507017: "an AI CPU task took longer than its time-out",
    507018: "an AI CPU task failed",
    507019: "the AI CPU returned an error for a data dump",
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
    507054: "device memory has an error that ECC cannot correct",
    507056: "a link between devices failed",
    507057: "a remote device is suspect",
    507899: "an internal error of the driver",
    507900: "an internal error of the AI CPU",
    507904: "the retry of a collective failed",
}
