"""Build of the compiled modules; everything else is in pyproject.toml.

Sources lie in `_ext/`, headers and stubs in `dumpsim/_ext/`. `depends` puts every source into the
sdist, because `cythonize` replaces the `.pyx` in `sources` by the generated C.
"""

import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("DUMPSIM_CYTHON_DEBUG") == "1"
CFLAGS = ["/O2", "/fp:precise"] if os.name == "nt" else ["-O3", "-ffp-contract=off", "-fvisibility=hidden"]
DEPENDS = sorted(p for p in glob("_ext/**/*", recursive=True) + glob("dumpsim/_ext/*.p*") if os.path.isfile(p))

# module -> C sources that are linked into it
MODULES = {
    "simd": ["cpu.c"],
    "stats": ["stats.c", "cpu.c"],
    "digest": ["digest.c", "cpu.c"],
    "layout": ["layout.c", "cpu.c"],
    "cast": ["cast.c", "cpu.c"],
    "metrics": ["metrics.c", "cpu.c"],
    "fold": ["fold.c"],
    "frames": [],
    "recorder": [],
}

setup(
    options={"build_ext": {"parallel": True}},
    ext_modules=cythonize(
        [
            Extension(
                f"dumpsim._ext.{name}",
                [f"_ext/{name}.pyx", *(f"_ext/src/{source}" for source in sources)],
                include_dirs=["_ext/src"],
                depends=DEPENDS,
                extra_compile_args=CFLAGS,
            )
            for name, sources in MODULES.items()
        ],
        build_dir="build/cython-debug" if DEBUG else "build/cython",
        language_level=3,
        compiler_directives={
            "boundscheck": DEBUG,
            "wraparound": DEBUG,
            "initializedcheck": DEBUG,
            "cdivision": not DEBUG,
            "freethreading_compatible": True,
        },
    ),
)
