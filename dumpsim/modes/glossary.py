"""The answers of ``dumpsim explain``: the meaning of fields, variables, codes and messages of the vendor.

They come from the tables that runs and checks use, so that they cannot contradict them.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dumpsim.core.codes import MEANINGS, RUNTIME_CODES
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.match import KernelRules
from dumpsim.modes import kernelbykernel, wholegraph
from dumpsim.modes.aclitems import ITEMS, LISTS
from dumpsim.modes.dialect import Field, Row, Rule, Section
from dumpsim.modes.profile import CHOICES, Profile, find, names

__all__ = ["Topic", "explain"]

# variable -> its meaning, and the source of that
_VARIABLES: dict[str, tuple[str, str]] = {
    "MINDSPORE_DUMP_CONFIG": (
        "Path of the dump config; turns dump on. Read when the first graph is compiled, before communication.init.",
        "seed 001, spec mindspore 1.5",
    ),
    "MS_DIAGNOSTIC_DATA_PATH": (
        "If the config has no path, the dump goes to the subdirectory debug_dump of this directory.",
        "seed 001, spec mindspore 1.5",
    ),
    "ENABLE_MS_GE_DUMP": ("1: dump by GE's own options (jit_level O2 only; removed in 2.6).", "seed 001, decisions"),
    "MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT": (
        "1 (default): leave out outputs that are known to be useless; 0: dump them.",
        "spec mindspore 1.5, 3.9",
    ),
    "MS_DEV_SAVE_GRAPHS": ("0 to 3: save the graphs of each stage, independently of the dump.", "spec mindspore 1.5"),
    "MS_DEV_SAVE_GRAPHS_PATH": ("Directory for the graphs.", "spec mindspore 1.5"),
    "DUMP_GE_GRAPH": ("1 to 3: save GE's graphs (jit_level O2); names in them are those of the dump.", "seed 001"),
    "DUMP_GRAPH_LEVEL": (
        "1 to 3: save the graphs of all stages, of the important ones, or of the last one.",
        "seed 001",
    ),
    "DUMP_GRAPH_PATH": ("Directory for GE's graphs.", "seed 001"),
    "MS_KERNEL_LAUNCH_SKIP": ("Operators to skip instead of launching them; ALL: all operators.", "spec mindspore 1.5"),
    "MS_DUMP_SLICE_SIZE": ("Size in MB (0 to 2048) of a slice that TensorDump sends.", "spec mindspore 1.5"),
    "MS_DUMP_WAIT_TIME": ("Seconds (0 to 600) that TensorDump waits for its channel.", "spec mindspore 1.5"),
    "MS_ASCEND_CHECK_OVERFLOW_MODE": (
        "SATURATION_MODE or INFNAN_MODE: what a chip of the 910B class stores for a result that is too large.",
        "spec parallel 4.4",
    ),
    "ASCEND_WORK_PATH": ("Directory for exception dumps, if ASCEND_DUMP_PATH is not set.", "spec ge 2.4"),
    "ASCEND_DUMP_PATH": ("Directory for exception dumps.", "spec ge 2.4"),
    "ASCEND_DUMP_SCENE": ("Kind of exception dump if no config sets one.", "spec ge 2.4"),
    "NPU_COLLECT_PATH": ("Directory for the full exception dump; turns it on.", "spec ge 2.4"),
    "HCCL_EXEC_TIMEOUT": ("Seconds that a collective waits; increase it if the dump makes ranks slow.", "seed 001"),
    "DUMPSIM_SIMD": ("baseline, avx2 or avx512: the instructions that kernels use.", "dumpsim"),
}

# settings of scripts that affect the dump: text, allowed values, default, source
_SETTINGS: dict[str, tuple[str, str, str, str]] = {
    "exception_dump": (
        'set_context(ascend_config={"exception_dump": ...}). 0: no exception dump; 1: the whole operator that failed; '
        "2: its arguments alone, refused together with an O2 dump.",
        "0, 1, 2",
        "2 without an O2 dump",
        "seed 001, spec mindspore 5.4",
    ),
    "dump_scene": (
        'aclinit_config({"dump": {"dump_scene": ...}}): the exception dump that CANN writes without a config.',
        "lite_exception, lite_exception:disable",
        "lite_exception",
        "spec mindspore 5.4",
    ),
    "jit_level": (
        "set_context(jit_level=...). O0 and O1: kernel by kernel, with e2e_dump_settings; O2: whole graphs, with "
        "file_format.",
        "O0, O1, O2",
        "O0",
        "seed 001, decisions",
    ),
}

# subjects that are not fields: text, facts, source
_SUBJECTS: dict[str, tuple[str, tuple[tuple[str, str], ...], str]] = {
    "nan": (
        "Not a number: the result of 0/0, inf - inf and the log or sqrt of a negative number, and of operators with a "
        "NaN input.",
        (
            ("find its origin", "dumpsim first DUMP"),
            ("list tensors with NaN", "dumpsim stat DUMP --bad"),
            ("count it in the dump", '"saved_data": "statistic", "statistic_category": ["max", "nan count"]'),
            ("dump only operators that overflow", '"op_debug_mode": 3; see dumpsim explain overflow'),
        ),
        "seed 001, spec mindspore 4.1",
    ),
    "overflow": (
        "A result too large for its number type. Chips of the 910A class store the largest number in its place "
        "(saturation), those of the 910B class infinity or NaN, unless MS_ASCEND_CHECK_OVERFLOW_MODE says otherwise.",
        (
            ("dump only operators that overflow", '"op_debug_mode": 3; overflow_number limits their number'),
            ("read what the hardware reported", "dumpsim ls DUMP --overflow"),
            ("find the origin of an infinity", "dumpsim first DUMP"),
        ),
        "seed 001, spec parallel 4.4",
    ),
}
# synonyms
_SUBJECT_WORDS = {
    **dict.fromkeys(("nans", "not a number", "loss is nan"), "nan"),
    **dict.fromkeys(("inf", "-inf", "infs", "infinity", "infinities", "overflows", "saturation"), "overflow"),
}

_EFFECTS = tuple(dict.fromkeys((*kernelbykernel.EFFECTS, *wholegraph.EFFECTS)))  # shared ones once

# messages of the vendor's libraries, which do not name the field [spec observed 2]
_LIBRARIES = {
    "[json.exception.type_error.302] type must be number": "support_device",
    "[json.exception.type_error.302] type must be string": "statistic_category",
    "Parenthesis": "kernels",
    "parenthesis": "kernels",
    "regex": "kernels",
    "regular expression": "kernels",
    "brace expression": "kernels",
    "MS_DIAGNOSTIC_DATA_PATH": "path",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """An answer of `explain`.

    Attributes
    ----------
    name, kind : str
        The word, and its kind.
    text : str
        Its meaning.
    facts : tuple of (str, str)
        Facts with titles: allowed values, defaults, forced values, cases without effect.
    source : str
    """

    name: str
    kind: str
    text: str
    facts: tuple[tuple[str, str], ...] = field(default=())
    source: str = ""


def explain(word: str) -> tuple[Topic, ...]:
    """Return the meanings of a word.

    Parameters
    ----------
    word : str
        A config field, a profile field, an environment variable, a code of ours or of the vendor's runtime, a subject
        (``NaN``, ``overflow``), or a message of the vendor in a log or an exception.

    Returns
    -------
    tuple of Topic
        Several if the word has several meanings.

    Raises
    ------
    BadInputError
        For an unknown word, with the nearest known one.

    Examples
    --------
    >>> [topic.kind for topic in explain("saved_data")]
    ['config field']
    >>> explain("507015")[0].text
    'An AI Core task failed.'
    """
    found = list(_topics(word.strip()))
    if not found:
        known = _known()
        raise BadInputError(
            f"unknown word {word!r}",
            where="dumpsim explain",
            allowed=("a config field", "a field of --set", "a variable", "a code", "a message"),
            nearest=nearest(word, known),
            code="DS-RUN-009",
        )
    return tuple(found)


def _topics(word: str) -> Iterator[Topic]:
    name = word.rpartition(".")[2].lower()
    for row in _rows():
        if isinstance(row, Field) and row.name == name:
            yield _field(row)
    yield from _acl_item(name)
    if name in _profile_fields():
        yield _profile_field(name)
    if word.upper() in _VARIABLES:
        text, source = _VARIABLES[word.upper()]
        yield Topic(name=word.upper(), kind="environment variable", text=text, source=source)
    if name in _SETTINGS:
        text, allowed, default, source = _SETTINGS[name]
        facts = (("allowed", allowed), ("default", default))
        yield Topic(name=name, kind="setting of a script", text=text, facts=facts, source=source)
    subject = _SUBJECT_WORDS.get(word.lower(), word.lower())
    if subject in _SUBJECTS:
        text, subject_facts, source = _SUBJECTS[subject]
        yield Topic(name=subject, kind="subject", text=text, facts=subject_facts, source=source)
    code = re.search(r"DS-[A-Z]+-\d+|\bEI\d{4}\b", word.upper())
    if code:
        yield from _code(code[0])
        return
    vendor = re.search(r"\bEP\d{4}\b", word.upper())
    for ours, meaning in MEANINGS.items() if vendor else ():
        if vendor and vendor[0] in meaning.says:
            yield from _code(ours)
            return
    for number in re.findall(r"\b[1-5]0\d{4}\b", word):
        if int(number) in RUNTIME_CODES:
            text = RUNTIME_CODES[int(number)]
            yield Topic(
                name=number, kind="runtime code", text=f"{text[:1].upper()}{text[1:]}.", source="spec parallel 4.5"
            )
    if " " in word:
        found = [*_messages(word)]
        yield from found or _mentioned(word)


def _acl_item(name: str) -> Iterator[Topic]:
    """Yield the topic of an item of an ACL config."""
    for item in ITEMS:
        if item.name == name:
            facts = [("allowed", ", ".join(item.allowed)), ("default", item.default)]
            shown = tuple(fact for fact in facts if fact[1])
            yield Topic(name=name, kind="item of an ACL config", text=item.about, facts=shown, source="spec ge 2.1")
    if name in LISTS:
        text = LISTS[name]
        yield Topic(name=name, kind="item of an ACL config", text=text, source="spec ge 2.1, 2.6, 2.8")


def _rows() -> tuple[Row, ...]:
    """Return the rows of all dialects; shared rows once."""
    shared = set(map(id, kernelbykernel.ROWS))
    return (*kernelbykernel.ROWS, *(row for row in wholegraph.ROWS if id(row) not in shared))


def _known() -> list[str]:
    fields = [row.name for row in _rows() if isinstance(row, Field)]
    fields += [*(item.name for item in ITEMS), *LISTS]
    return [*fields, *_profile_fields(), *_VARIABLES, *_SETTINGS, *_SUBJECTS, *MEANINGS, *(row.code for row in _rows())]


def _field(row: Field) -> Topic:
    """Return the topic of a config field, with its rules."""
    facts = [("place", row.where), ("type", row.kind)]
    if row.allowed:
        facts.append(("allowed", ", ".join(map(_shown, row.allowed))))
    if row.tolerated:
        facts.append(("accepted, but not documented", ", ".join(map(_shown, row.tolerated))))
    if row.default is not None:
        facts.append(("default", _shown(row.default)))
    for rule in _rows():
        if isinstance(rule, Rule) and (rule.where == row.where or row.name in rule.force):
            forced = ", ".join(f"{name} becomes {_shown(value)}" for name, value in rule.force.items())
            facts.append((rule.level, f"{_neutral(rule.what)}{f' ({forced})' if forced else ''} [{rule.code}]"))
    facts += [("no effect", _neutral(effect.why)) for effect in _EFFECTS if effect.name == row.name]
    return Topic(
        name=row.name, kind="config field", text=row.about, facts=tuple(facts), source="seed 001, spec mindspore 1"
    )


def _code(code: str) -> Iterator[Topic]:
    """Yield the topics of a code of ours."""
    meaning = MEANINGS.get(code)
    if meaning is not None:
        facts = (("what helps", meaning.help),) if meaning.help else ()
        yield Topic(name=code, kind="code", text=meaning.what, facts=facts, source=meaning.source)
    for row in _rows():
        if row.code == code:
            yield _row(row)


def _row(row: Row) -> Topic:
    """Return the topic of a row of a dialect."""
    if isinstance(row, Section):
        return Topic(
            name=row.code, kind="config error", text=f"The section {row.name} is missing.", facts=_says(row.vendor)
        )
    if isinstance(row, Field):
        topic = _field(row)
        return Topic(
            name=row.code,
            kind="config error",
            text=f"{row.where} is missing or has an illegal value. {topic.text}",
            facts=(*topic.facts, *_says(row.refusal)),
            source=topic.source,
        )
    facts = [("place", row.where), *_says(row.vendor)]
    if row.allowed:
        facts.append(("allowed", ", ".join(row.allowed)))
    facts += [("forced", f"{name} = {_shown(value)}") for name, value in row.force.items()]
    return Topic(
        name=row.code,
        kind=f"config {row.level}",
        text=f"{_neutral(row.what)}.",
        facts=tuple(facts),
        source="spec mindspore 1",
    )


def _says(vendor: str | None) -> tuple[tuple[str, str], ...]:
    return (("MindSpore says", vendor),) if vendor else ()


def _messages(text: str) -> Iterator[Topic]:
    """Yield the topics of codes and rows whose vendor text is in a message."""
    for code, meaning in MEANINGS.items():
        if any(start in text for start in meaning.says):
            yield from _code(code)
    for row in _rows():
        templates = (row.refusal, row.missing) if isinstance(row, Field) else (row.vendor,)
        if any(template and _pattern(template, getattr(row, "name", "")).search(text) for template in templates):
            yield _row(row)


def _mentioned(text: str) -> Iterator[Topic]:
    """Yield the topics of fields that a message names, or that belong to a message of a library."""
    words = set(re.findall(r"\w+", text))
    words |= {name for part, name in _LIBRARIES.items() if part in text}
    for row in _rows():
        if isinstance(row, Field) and row.name in words:
            yield _field(row)


@cache
def _pattern(template: str, name: str) -> re.Pattern[str]:
    """Compile a vendor's text to a pattern that matches any values."""
    parts = re.split(r"\{\w+\}", template.replace("{name}", name))
    return re.compile(".*?".join(re.escape(part.strip()) for part in parts), re.DOTALL)


@cache
def _profile_fields() -> dict[str, str]:
    """Return the meanings of a profile's fields, from the docstring of `Profile`."""
    text = inspect.getdoc(Profile) or ""
    found: dict[str, str] = {}
    for names_, about in re.findall(r"^([a-z_, 0-9]+) : [^\n]+\n((?:    [^\n]+\n?)+)", text, re.MULTILINE):
        for name in names_.split(", "):
            found[name] = " ".join(about.split())
    return found


def _profile_field(name: str) -> Topic:
    """Return the topic of a profile's field, with its value in each profile."""
    values: dict[str, list[str]] = {}
    for profile in names():
        release, device = profile.split("/")
        value = getattr(find(release, device), name)
        values.setdefault(_shown(value), []).append(profile)
    facts = [("allowed", ", ".join(CHOICES[name]))] if name in CHOICES else []
    facts += [(value, ", ".join(profiles)) for value, profiles in values.items()]
    return Topic(
        name=name,
        kind="field of a profile (--set)",
        text=_profile_fields()[name],
        facts=tuple(facts),
        source="decisions",
    )


def _shown(value: Any) -> str:
    """Format a value as in a config."""
    if isinstance(value, KernelRules):
        value = value.rules
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(getattr(value, "text", value))


def _neutral(text: str) -> str:
    """Return a rule's text without its values."""
    words = {"target": "such a device", "value": "the value", "device_id": "the device", "part": "such a part"}
    return re.sub(r"\{(\w+)\}", lambda found: words[found[1]], text)
