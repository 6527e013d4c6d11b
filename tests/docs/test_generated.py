"""Generated pages are those that docs/generate.py would write now, links lead somewhere, and the site is built."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import GENERATED, ROOT

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli", "config", "support"])
def test_a_page_is_what_the_script_writes(generate, name):
    path, make = generate.PAGES[name]
    text = make()
    assert text.startswith(GENERATED)
    assert (DOCS / path).read_text("utf-8") == text, f"run: python docs/generate.py {name}"


@pytest.mark.slow
def test_the_picture_shows_what_is_printed(generate):
    def texts(svg):
        return re.findall(r">([^<>]+)</text>", svg)

    assert texts((DOCS / "images" / "first.svg").read_text("utf-8")) == texts(generate.picture())


def test_every_benchmark_on_the_page_exists():
    page = (DOCS / "performance.md").read_text("utf-8")
    assert page.startswith(GENERATED)
    names = {match for match in re.findall(r"^\| (\w+)", page, re.MULTILINE) if match != "Benchmark"}
    tests = {
        name
        for path in (ROOT / "tests" / "bench").glob("bench_*.py")
        for name in re.findall(r"def test_(\w+)", path.read_text("utf-8"))
    }
    assert names
    assert names <= tests


def test_links_lead_somewhere():
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in [ROOT / "README.md", *DOCS.rglob("*.md")]
        for target in LINK.findall(path.read_text("utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert broken == []


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    assert listed == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


@pytest.mark.docs
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "site" / "reference" / "api" / "index.html").read_text("utf-8")
    assert "DumpSet" in page
    assert "global_array" in page
    loaded = [
        found
        for path in Path(tmp_path / "site").rglob("*.html")
        for found in re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', path.read_text("utf-8"))
    ]
    assert loaded == []  # nothing comes from the net
