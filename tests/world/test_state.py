"""No module of `frontends/`, `runtime/` or `dump/` has module-level state of a rank; the check finds such state."""

import importlib
import sys
import textwrap
import types
from pathlib import Path

import pytest

import dumpsim
from tests.world.state import findings

PACKAGE = Path(dumpsim.__file__).parent
FILES = [path for room in ("frontends", "runtime", "dump") for path in sorted((PACKAGE / room).rglob("*.py"))]
FILES.append(PACKAGE / "migrator.py")


def name_of(path):
    return ".".join(("dumpsim", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def needs(path):
    parts = path.relative_to(PACKAGE).parts
    return [pytest.mark.torch] if any(part.startswith(("torch", "pytorch")) for part in parts) else []


@pytest.fixture
def names_of_torch():
    """Give torch its names back: the import of torch_npu replaces some, for every later test of this process."""
    yield
    if found := sys.modules.get("dumpsim.frontends.torchair.torch_npu"):
        found.uninstall()


@pytest.mark.usefixtures("names_of_torch")
@pytest.mark.parametrize("path", [pytest.param(path, marks=needs(path), id=name_of(path)) for path in FILES])
def test_a_module_keeps_no_state(path):
    assert findings(importlib.import_module(name_of(path)), path.read_text()) == []


def found(source, **names):
    module = types.ModuleType("planted")
    vars(module).update(names)
    text = textwrap.dedent(source)
    exec(compile(text, "planted", "exec"), vars(module))
    return findings(module, text)


PLANTED = {
    "a dict": "cache = {}",
    "a list": "queue = []",
    "a set": "seen: set[int] = set()",
    "an iterator": "from itertools import count\nnumbers = count(1)",
    "a weak dictionary": "from weakref import WeakKeyDictionary\nof = WeakKeyDictionary()",
    "a dict in a tuple": "rows = (1, ({},))",
    "a dict in a MappingProxyType": "from types import MappingProxyType\ntable = MappingProxyType({'a': {}})",
    "a dict made by a loop": "for name in 'ab':\n    tables = {name: 1}",
    "a dict under if": "if True:\n    cache = {}",
    "a name without an assignment": "globals()['cache'] = {}",
    "an instance": "class State:\n    def __init__(self):\n        self.n = 0\nstate = State()",
    "an instance with slots": "class State:\n    __slots__ = ('n',)\nstate = State()",
    "a dataclass": "from dataclasses import dataclass\n@dataclass\nclass State:\n    n: int = 0\nSTATE = State()",
    "a frozen dataclass that holds a list": (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Row:\n    n: object\nROW = Row([])"
    ),
    "an array": "import numpy as np\nbuffer = np.zeros(3)",
    "a lock": "import threading\nlock = threading.Lock()",
    "a ContextVar with a list": "from contextvars import ContextVar\nv = ContextVar('v', default=[])",
    "a dict of a class": "class A:\n    cache = {}",
    "a dict of an inner class": "class A:\n    class B:\n        cache = {}",
    "global": "n = 0\ndef f():\n    global n\n    n += 1",
    "an attribute of a class": "class A:\n    current = None\ndef f(x):\n    A.current = x",
    "an attribute of a class by cls": (
        "class A:\n    current = None\n    @classmethod\n    def use(cls, x):\n        cls.current = x"
    ),
    "an attribute of a class by type(self)": ("class A:\n    n = 0\n    def f(self):\n        type(self).n += 1"),
    "an attribute of a class by __class__": ("class A:\n    n = 0\n    def f(self):\n        self.__class__.n += 1"),
    "an attribute of a class by setattr": "class A:\n    n = 0\ndef f():\n    setattr(A, 'n', 1)",
    "an attribute of a function": "def f():\n    f.calls = 1",
    "an attribute of a function from inside of another": "def f():\n    def g():\n        f.calls = 1\n    return g",
    "an item": "from types import MappingProxyType\nT = MappingProxyType({})\ndef f():\n    T['a'] = 1",
    "a method that changes": "table = ()\ndef f(x):\n    table.append(x)",
    "a cached function that reads the rank": (
        "from functools import cache\nfrom dumpsim.world import current\n@cache\ndef f():\n    return current().rank"
    ),
    "a cached function that reads the environment": (
        "import os\nfrom functools import lru_cache\n@lru_cache(3)\ndef f():\n    return os.environ.get('A')"
    ),
    "overloads of another module": (
        "from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph\nimport math\n"
        "g = MultitypeFuncGraph('g')\ng.register('Number')(math.sqrt)"
    ),
    "overloads that a function adds": (
        "from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph\n"
        "g = MultitypeFuncGraph('g')\ndef f():\n    g.register('Number')(f)"
    ),
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED)
def test_planted_state_is_found(source):
    assert found(source) != []


ALLOWED = {
    "constants": "A = 1\nB = ('a', b'b', None, 1.5, ...)\nC = frozenset(['a'])\n__all__ = ['A']",
    "tables": "import re\nfrom types import MappingProxyType\nT = MappingProxyType({'a': (1, re.compile('a'))})",
    "frozen rows": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass R:\n    n: int\nR1 = R(1)",
    "an imported dict": "from os import environ",
    "types": "from typing import Any, TypeVar\nT = TypeVar('T')\nKey = tuple[Any, ...]\nSome = int | None",
    "a read-only array": "import numpy as np\nN = np.frombuffer(b'', np.uint8)",
    "a ContextVar": "from contextvars import ContextVar\nv = ContextVar('v', default=())",
    "a pure cache": "from functools import cache\n@cache\ndef f(x):\n    return [x]",
    "an object without state": "class Nothing:\n    __slots__ = ()\nNothing.__module__ = 'dumpsim.x'\nN = Nothing()",
    "state of an instance": "class A:\n    n = 0\n    def f(self):\n        self.n += 1\n        self.rows = []",
    "a local name": "rows = ()\ndef f():\n    rows = []\n    rows.append(1)\n    rows[0] = 2",
    "overloads": (
        "from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph\n"
        "g = MultitypeFuncGraph('g')\n@g.register('Number')\ndef f(x):\n    return x\nf.__module__"
    ),
    "state in the rank context": (
        "from dumpsim.world import current\nclass State:\n    n = 0\ndef f():\n    current().get(State).n += 1"
    ),
}


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_what_is_constant_is_allowed(source):
    assert found(source, __name__="planted") == []


def test_every_module_of_the_rooms_is_checked():
    assert len(FILES) > 150
    assert {path.parent.name for path in FILES} >= {"runtime", "dump", "mindspore", "_capture", "pytorch", "engine"}
