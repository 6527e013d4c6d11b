"""Every file that dumpsim reads is opened by `dumpsim.core.regular`, or is listed here with the reason."""

import ast
import re
from pathlib import Path

import dumpsim

ROOT = Path(dumpsim.__file__).parent
OPENER = "core/regular.py"

# what a call opens: "name" for a bare call, ".name" for a method, "module.name" for a function of a module
BARE = {"open", "io.open", "io.FileIO", "codecs.open", "os.open", "os.fdopen", "os.readlink"}
BARE |= {"np.load", "np.fromfile", "np.memmap", "np.loadtxt", "np.genfromtxt", "np.lib.format.open_memmap"}
BARE |= {"json.load", "pickle.load", "marshal.load", "tomllib.load", "mmap.mmap", "linecache.getline"}
BARE |= {"zipfile.ZipFile", "tarfile.open", "gzip.open", "bz2.open", "lzma.open", "sqlite3.connect"}
BARE |= {"shutil.copyfile", "shutil.copy", "shutil.copy2", "shutil.copytree", "fileinput.input"}
METHODS = {"read_text", "read_bytes", "open"}
CALL = re.compile(rf"\b(?:{'|'.join({name.rpartition('.')[2] for name in BARE | METHODS})})\b")
NOT_FILES = {("BinFile", "open"), ("DumpFile", "open"), ("self", "open"), ("_group", "open")}  # they open by our opener

ALLOWED = {
    OPENER: "the opener itself",
    # writers
    "archive/growfile.py": "opens files of a dump that grow, to write them",
    "archive/part.py": "writes the files of a dump",
    "archive/claim.py": "claims a directory by a file",
    "analysis/wholefile.py": "writes into pipes and devices that the user named",
    "dump/manifest.py": "writes the manifest",
    "runtime/graphfile.py": "writes graphs",
    "frontends/mindspore/ops/_channels.py": "appends what the script prints to a file that the script named",
    "world/processes.py": "opens the standard output of a forked rank",
    "world/segment.py": "opens and maps anonymous memory of other ranks",
    "core/partname.py": "reads which process is which from /proc",
    "frontends/torchair/_refusals.py": "reads a table of the package",
    "frontends/torchair/_table.py": "reads tables of the package",
    "emulate/binding.py": "reads the CPUs of NUMA nodes from /sys",
    "emulate/nodeclaim.py": "claims a number by a file, and makes a token",
    "testing/rollcall.py": "locks a file, and reads what other ranks of a pytest run have written",
    "emulate/processes.py": "writes and follows the logs of its own processes",
    # files of dumpsim itself
    "frontends/mindspore/common/_numbertypes.py": "reads data of the package",
    "frontends/mindspore/common/_operandtypes.py": "reads data of the package",
    "frontends/mindspore/_vendor.py": "reads data of the package",
    "frontends/apidump/mindspore/calls.py": "reads data of the package",
    "frontends/apidump/pytorch/catalogue.py": "reads data of the package",
    "examples/lenet.py": "reads data of the package",
    "emulate/localjob.py": "reads the script that runs",
    "frontends/apidump/stack.py linecache.getline": "reads the source of the script that runs",
    # files that belong to the script, which could open them itself
    "frontends/mindspore/dataset/files.py": "reads a data set of the script",
    "frontends/mindspore/train/serialization.py": "reads and writes a checkpoint of the script",
    "frontends/mindspore/train/printfile.py": "reads a file that the script's own Print wrote",
    # maps that have no file, and files that are mapped through the opener's descriptor
    "device/arena.py": "maps anonymous memory",
    "codecs/npy.py np.memmap": "maps the descriptor of an opened file",
    "codecs/binfile.py np.memmap": "maps the descriptor of an opened file",
    "cli/app.py": "opens /dev/null for output that nobody reads",
}


def name_of(function: ast.expr) -> str:
    """The dotted name of what is called, empty where it has none."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute):
        base = name_of(function.value)
        return f"{base}.{function.attr}"
    return ""


def opens(tree: ast.Module) -> list[tuple[int, str]]:
    """Lines and names of calls that open a file by its path."""
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node.func).replace("numpy.", "np.")
        holder, _, method = name.rpartition(".")
        if name == "open" and "open" in own:
            continue
        if name in BARE or (
            isinstance(node.func, ast.Attribute)
            and method in METHODS
            and (holder.rpartition(".")[2], method) not in NOT_FILES
        ):
            found.append((node.lineno, name))
    return found


def all_opens() -> dict[str, list[tuple[int, str]]]:
    """Calls by module."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in ROOT.rglob("*.py")}
    return {name: opens(ast.parse(text)) for name, text in texts.items() if CALL.search(text)}


def test_files_are_opened_by_the_one_opener():
    used = set()
    bare = []
    for module, found in all_opens().items():
        for line, call in found:
            reasons = {module, f"{module} {call}"} & set(ALLOWED)
            used |= reasons
            if not reasons:
                bare.append(f"{module}:{line}: {call}")
    assert not bare, f"read files by {OPENER}, or list the module in ALLOWED with the reason"
    assert used == set(ALLOWED), "remove what is not used any longer"


def test_the_lint_finds_what_it_should():
    code = "open(p)\nPath(p).read_text()\nos.open(p, 0)\nnumpy.load(p)\nBinFile.open(p)\njson.load(f)\nfile.open()\n"
    assert [line for line, _ in opens(ast.parse(code))] == [1, 2, 3, 4, 6, 7]
    assert opens(ast.parse("def open(p): ...\nopen(p)")) == []
