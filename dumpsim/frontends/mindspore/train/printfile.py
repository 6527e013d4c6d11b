"""``parse_print``: a reader of the files of the operator Print."""

from typing import Any

from dumpsim.codecs import printfile
from dumpsim.core.errors import ScriptValueError, UnreadableError, UnsupportedError
from dumpsim.core.settings import RunSettings

__all__ = ["parse_print"]


def parse_print(print_file_name: str) -> list[Any]:
    """Read the texts and Tensors of a file of Print, in the order of printing. [spec observed 3]

    Parameters
    ----------
    print_file_name : str
        The path set by ``set_context(print_file_path=...)``.

    Raises
    ------
    FileNotFoundError
    ValueError
        For an empty file or another kind of file, with MindSpore's messages.
    NotImplementedError
        In release 2.10, which has no parse_print.
    """
    from dumpsim.frontends.mindspore.common.tensor import Tensor

    if RunSettings.from_environment().mindspore == "2.10":
        raise UnsupportedError("release 2.10 has no parse_print", nearest="--mindspore 2.7")
    with open(print_file_name, "rb") as file:
        data = file.read()
    if not data:
        raise ScriptValueError(
            "For 'parse_print', the print file may be empty, please make sure enter the correct 'print_file_name'."
        )
    try:
        items = printfile.decode(data, str(print_file_name))
    except UnreadableError as error:
        raise ScriptValueError(
            f"{error}\nFailed to read the print file {print_file_name}, please check whether the file is correct."
        ) from error
    return [item if isinstance(item, str) else Tensor(item.copy()) for item in items]
