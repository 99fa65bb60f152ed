"""A copy of the checkout, or of a commit, in which faults are seeded. The checkout itself is never changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.seeded_faults.fault import SeededFault
from benchmarks.results import CHECKOUT
from headroom.schemas.environment import JARS

# Set-up makes these once. Tests look for them beside the code.
_LINKED = (".venv", ".jars", ".tools")
_LAYERS = ("schemas", "planning", "cluster", "alerts", "streaming", "operations", "cli")


class CodeTree:
    """A copy of the code with its tests.

    Args:
        folder: folder of the copy.
        scratch: empty folder for the temporary files of tests.
    """

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self.scratch = scratch

    def environment(self, with_jvm: bool = False) -> dict[str, str]:
        """Return the environment in which this process, its tests and their children import the code of the copy.

        PYTHONPATH comes before the editable installation of the checkout, whatever the folder of the process.

        Args:
            with_jvm: whether JVMs are started. Then the jars are named by the folder of set-up, because its archives of
                classes are valid for these paths only.
        """
        path = [str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        jars = {JARS: os.environ.get(JARS, str(CHECKOUT / ".jars"))} if with_jvm else {}
        # A compiled module is taken for that of a file with the same second and size, as a file with a fault often has.
        return os.environ | jars | {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}

    def require_own_code(self) -> None:
        """Check that a Python process in another folder imports the code of the copy.

        Raises:
            HeadroomError: it imports other code, so that no fault would ever be seen.
        """
        # Before they were parts of ``headroom``, the layers were packages of their own, without use cases.
        is_before = (self.folder / "cli").exists() and not (self.folder / "headroom").exists()
        names = (
            [layer for layer in _LAYERS if layer != "operations"] if is_before else [f"headroom.{n}" for n in _LAYERS]
        )
        probe = f"import os, {', '.join(names)}\nfor m in ({', '.join(names)}): print(os.path.realpath(m.__path__[0]))"
        done = subprocess.run(
            [sys.executable, "-c", probe],
            cwd=self.scratch,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        expected = [str((self.folder / name.removeprefix("headroom.")).resolve()) for name in names]
        if done.stdout.split() != expected:
            raise failure(f"the code of the copy is not imported: {(done.stdout + done.stderr)[-500:]}")

    @contextmanager
    def seeded(self, fault: SeededFault) -> Iterator[None]:
        """Let the copy have a fault in this block.

        Raises:
            HeadroomError: the fault does not fit its file.
        """
        path = fault.file(self.folder)
        before = path.read_text(encoding="utf-8")
        path.write_text(fault.seeded_in(before), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")


@contextmanager
def copied_tree(commit: str | None) -> Iterator[CodeTree]:
    """Yield a copy of the checkout with its uncommitted changes, or of a commit; it is deleted afterwards.

    Raises:
        HeadroomError: there is no such commit.
    """
    with tempfile.TemporaryDirectory(prefix="headroom-seeded-") as temporary:
        folder, scratch = Path(temporary) / "code", Path(temporary) / "scratch"
        folder.mkdir()
        scratch.mkdir()
        if commit is None:
            _copy_checkout(folder)
        else:
            _extract(commit, folder)
        for name in _LINKED:
            if (CHECKOUT / name).exists():
                (folder / name).symlink_to(CHECKOUT / name, target_is_directory=True)
        tree = CodeTree(folder, scratch)
        tree.require_own_code()
        yield tree


def _copy_checkout(folder: Path) -> None:
    listed = _git("ls-files", "--cached", "--others", "--exclude-standard", "-z").decode()
    for name in filter(None, listed.split("\0")):
        # A tracked file may have been deleted.
        if (CHECKOUT / name).is_file() or (CHECKOUT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, folder / name, follow_symlinks=False)


def _extract(commit: str, folder: Path) -> None:
    # Not a worktree, which would be registered in the repository of the checkout.
    subprocess.run(["tar", "--extract", "--directory", str(folder)], input=_git("archive", commit), check=True)


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, check=False)
    if done.returncode:
        raise failure(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout
