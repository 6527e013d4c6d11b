"""Build of the compiled modules; everything else is in pyproject.toml.

Sources lie in `_ext/`, headers and stubs in `dumpsim/_ext/`. `depends` puts every source into the
sdist, because `cythonize` replaces the `.pyx` in `sources` by the generated C.
"""

import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

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


class BuildExt(build_ext):
    """Takes a compiled module that lies in the checkout and is newer than all sources.

    An editable install builds in a new temporary directory each time; without this, the second one compiles everything
    again. Modules of a debug build cannot be told from others, so where there was one, everything is compiled.
    """

    def build_extension(self, ext):
        present = self.get_ext_filename(self.get_ext_fullname(ext.name))
        usable = self.editable_mode and not self.force and not DEBUG and not os.path.isdir("build/cython-debug")
        if usable and os.path.exists(present) and not newer_group([*DEPENDS, "setup.py"], present):
            target = self.get_ext_fullpath(ext.name)
            self.mkpath(os.path.dirname(target))
            self.copy_file(present, target)
        else:
            super().build_extension(ext)


setup(
    cmdclass={"build_ext": BuildExt},
    # a path file, which mypy and pyright follow, and not setuptools' import hook, which they do not see
    options={"build_ext": {"parallel": True}, "editable_wheel": {"mode": "compat"}},
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
