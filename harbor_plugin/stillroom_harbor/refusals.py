"""What an agent should do about a refused model call: the gateway says it in the error's code."""

import re

_CODE = re.compile(r"""["']code["']\s*:\s*["'](\w+)["']""")
_FINAL_CODES = ("trial_ended", "trial_suspended", "invalid_api_key", "unknown_trial", "not_found")
_FINAL_STATUSES = (401, 403)


def code_in(text: str) -> str | None:
    """The code of an OpenAI-shaped error, in its JSON or in a client's rendering of it."""
    found = _CODE.search(text)
    return found[1] if found else None


def stop_of(code: str | None) -> str | None:
    """How a refusal with this code ends the episode: `overflow`, or the limit that is reached, e.g. `usd_limit`. None: it does not."""
    if code == "context_length_exceeded":
        return "overflow"
    return code.removesuffix("_reached") if code is not None and code.endswith("_limit_reached") else None


def is_final(code: str | None, status: int | None = None) -> bool:
    """True when no call will be answered, however often it is made, and it is not for the agent to say how the trial ended: the trial is
    over, or the key or the address is wrong. `status` is the answer's, for one that is not the gateway's (a proxy before it)."""
    return code in _FINAL_CODES or status in _FINAL_STATUSES
