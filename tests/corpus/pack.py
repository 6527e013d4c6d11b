"""Recorded nets in compact form: ``python tests/corpus/pack.py FOLDER...`` adds them to the fixtures.

A folder is what ``tests/corpus/record.py`` left: ``net.py``, ``tree``, ``stages``. `load` reads both
the folder and the compact form.
"""

import argparse
import json
import lzma
import re
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import trees

CORPUS = Path(__file__).resolve().parents[2] / "fixtures" / "mindspore_2_10" / "corpus"
NETS, STAGES = CORPUS / "nets", CORPUS / "stages"
_STAGE = re.compile(r"(?P<name>.*?)_?(?P<serial>\d{4})\.ir")
_LAST = r"\d+_backend_pass"  # 22 for cells, 32 for jit functions
_SOURCE = re.compile(r"\n *# In file [^\n]*")


def features(script: str) -> list[str]:
    """The features that a net's first line names.

    >>> features('\"\"\"if, while\"\"\"')
    ['if', 'while']
    """
    return [item.strip() for item in script.split('"""')[1].split(",")]


def stages(folder: Path) -> dict[int, tuple[str, Path]]:
    """Name and path of each printed stage by its serial number, which follows time."""
    found = {}
    for path in folder.glob("*.ir"):
        if match := _STAGE.fullmatch(path.name):
            found[int(match["serial"])] = (match["name"], path)
    return dict(sorted(found.items()))


def models(folder: Path) -> list[dict[str, Any]]:
    """Ids of the kernel graphs and number of kernels of each compile."""
    found: list[dict[str, Any]] = []
    for name, _ in stages(folder / "stages").values():
        if re.fullmatch(_LAST, name):
            found.append({"graphs": [], "kernels": 0})
        elif match := re.fullmatch(r"graph_build_(\d+)", name):
            order = folder / "tree" / "rank_0" / "execution_order" / f"ms_execution_order_graph_{match[1]}.csv"
            if not found:
                found.append({"graphs": [], "kernels": 0})
            found[-1]["graphs"].append(int(match[1]))
            found[-1]["kernels"] += len(order.read_text().splitlines()) - 1
    return found


def printed(folder: Path) -> list[dict[str, Any]]:
    """Return what real MindSpore printed of each compile, without source lines.

    ``opt_a`` is the text after the optimisations that inline and differentiate, ``backend_pass`` the last one of the
    front end, and ``final`` the text of each kernel graph in the dump, by its id.
    """
    found: list[dict[str, Any]] = []
    latest = ""
    for name, path in stages(folder / "stages").values():
        if re.fullmatch(r"opt_pass_\d+_opt_a|\d+_jit_opt_a", name):
            latest = _SOURCE.sub("", path.read_text())
        elif re.fullmatch(_LAST, name):
            found.append({"opt_a": latest, "backend_pass": _SOURCE.sub("", path.read_text()), "final": {}})
        elif (match := re.fullmatch(r"graph_build_(\d+)", name)) and found:
            text = (folder / "tree/rank_0/graphs" / f"ms_output_trace_code_graph_{match[1]}.ir").read_text()
            found[-1]["final"][match[1]] = _SOURCE.sub("", text)
    return found


def read(folder: Path) -> dict[str, Any]:
    """A recorded folder as plain data, without its stages."""
    script = (folder / "net.py").read_text()
    return {
        "features": features(script),
        "script": script,
        "models": models(folder),
        "tree": trees.read(folder / "tree"),
    }


def load(name: str | Path) -> dict[str, Any]:
    """A net of the corpus by its name, or the recorded net of a folder."""
    if Path(name).is_dir():
        return read(Path(name))
    found: dict[str, Any] = json.loads(lzma.decompress((NETS / f"{name}.json.xz").read_bytes()))
    return found


def load_stages(name: str | Path) -> list[dict[str, Any]]:
    """The stages of each compile of a net of the corpus, or of a recorded folder; see `printed`."""
    if Path(name).is_dir():
        return printed(Path(name))
    found: list[dict[str, Any]] = json.loads(lzma.decompress((STAGES / f"{name}.json.xz").read_bytes()))
    # the first records call it 22_backend_pass
    return [{key.removeprefix("22_"): text for key, text in compiled.items()} for compiled in found]


def _store(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def names() -> list[str]:
    """Names of all nets of the corpus."""
    return sorted(path.name.removesuffix(".json.xz") for path in NETS.glob("*.json.xz"))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", type=Path)
    options = parser.parse_args()
    for folder in options.folder:
        if (folder / "net.py").exists() and not (folder / "refused.txt").exists():
            _store(NETS / f"{folder.name}.json.xz", read(folder))
            _store(STAGES / f"{folder.name}.json.xz", printed(folder))


if __name__ == "__main__":
    main()
