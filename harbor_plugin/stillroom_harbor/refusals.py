"""What an agent should do about a refused model call: the gateway says it in the error's code."""

import re

_CODE = re.compile(r"""["']code["']\s*:\s*["'](\w+)["']""")
_TRIAL_IS_OVER = ("trial_ended", "trial_suspended")


def code_in(text: str) -> str | None:
    """The code of an OpenAI-shaped error, in its JSON or in a client's rendering of it."""
    found = _CODE.search(text)
    return found[1] if found else None


def stop_of(code: str | None) -> str | None:
    """How a refusal with this code ends the episode: `overflow`, or the limit that is reached, e.g. `usd_limit`. None: it does not."""
    if code == "context_length_exceeded":
        return "overflow"
    return code.removesuffix("_reached") if code is not None and code.endswith("_limit_reached") else None


def is_trial_over(code: str | None) -> bool:
    """True when no call of this trial will be answered again, and it is not for the agent to say how it ended."""
    return code in _TRIAL_IS_OVER
