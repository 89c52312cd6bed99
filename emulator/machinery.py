"""What machines are made of, which whoever starts the emulated AWS hands to its process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machinery:
    """What machines are made of.

    Attributes:
        image: Root directory that they start from, of `emulator.machines.image`.
        borrowed: Directories of this computer that they can read, at the same path.
    """

    image: Path
    borrowed: Sequence[Path] = ()

    def as_text(self) -> str:
        """Return it as an argument of the server's process."""
        return json.dumps({"image": str(self.image), "borrowed": [str(each) for each in self.borrowed]})

    @classmethod
    def of_text(cls, text: str) -> Machinery:
        """Return what `as_text` was called of."""
        values = json.loads(text)
        return cls(Path(values["image"]), tuple(map(Path, values["borrowed"])))
