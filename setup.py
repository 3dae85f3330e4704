"""What `pip install .` puts in place: the package groundwork, with the program's own tree inside it as data.

engine, components and pages are common names: at the top level of site-packages they could clash with others'.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
TREE = ("engine", "components", "pages", "assets", "docs", ".streamlit", "app.py", "LICENSE")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "images", "secrets.toml")


class WithTree(build_py):
    """Copies the tree behind the package's own modules."""

    def run(self) -> None:
        """Build as usual, then copy."""
        super().run()
        target = Path(self.build_lib) / "groundwork" / "tree"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in TREE:
            if (HERE / name).is_dir():
                shutil.copytree(HERE / name, target / name, ignore=LEFT_OUT)
            else:
                shutil.copy2(HERE / name, target / name)


setup(cmdclass={"build_py": WithTree})
