"""Stands in for the package `peft`, which the skyrl servers use for one thing: writing adapter_config.json beside saved weights.

The real package imports torch, several gigabytes that the JAX servers do not need.
"""

import json
from pathlib import Path


class LoraConfig:
    """The settings of an adapter, in the file layout of the real package."""

    def __init__(self, **settings: object) -> None:
        self._settings = {"peft_type": "LORA", **settings}

    def save_pretrained(self, folder: str | Path) -> None:
        text = json.dumps(self._settings, indent=2, default=str)
        (Path(folder) / "adapter_config.json").write_text(text, encoding="utf-8")
