"""What a served model's failures mean, and whether asking again can help."""

from __future__ import annotations

import os
from typing import Any

from engine.errors import GroundworkError, PromptTooLong, ServerError

PASSING = (408, 409, 425, 429)  # and every 5xx
TOO_LONG = ("context length", "context_length", "maximum context", "too many tokens", "prompt is too long")


def worth_retrying(error: Exception) -> bool:
    """Whether the failure may pass: connection, time-out, overload, a server's own fault."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return error.status_code in PASSING or error.status_code >= 500
    return not isinstance(error, openai.OpenAIError) or isinstance(error, openai.APIConnectionError)


def retry_after(error: Exception) -> float:
    """Seconds that the server asks to wait; 0 where it does not say."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        return float(headers.get("retry-after", 0))
    except ValueError:
        return 0.0


def explain(error: Exception, model: Any, partial: str) -> GroundworkError:
    """The failure as an error of ours: what happened, what to do next. `model` is the `ServerModel`."""
    if any(words in str(error).lower() for words in TOO_LONG):
        return PromptTooLong(
            f"The prompt is too long for {model.name}: {_short(error, model)}. Leave out some passages."
        )
    if partial:
        return ServerError(
            f"{model.name} went away in the middle of its answer. Ask again; the text so far is kept.", partial
        )
    return ServerError(_reason(error, model))


def _reason(error: Exception, model: Any) -> str:
    import openai

    if isinstance(error, openai.APITimeoutError):
        return f"{model.name} said nothing for {model.timeout:g} seconds. Try again, or choose another model."
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return f"{model.name} refused the key. Set {model.key_env} to a key that may use this model."
    if isinstance(error, openai.NotFoundError):
        return f"There is no model {model.model} at {model.base_url}. Check the name and the address."
    if isinstance(error, openai.RateLimitError):
        return f"{model.name} takes no more requests for now. Wait, or check the account's limits."
    if isinstance(error, openai.APIStatusError):
        return f"{model.name} failed with status {error.status_code} ({_short(error, model)}). Try again later."
    return (
        f"{model.name} cannot be reached ({_short(error, model)}). Check that the server runs and the address is right."
    )


def _short(error: Exception, model: Any) -> str:
    """The first line of what was said, without the key, which a server may say back."""
    key = os.environ.get(model.key_env)
    text = str(error).replace(key, "[key]") if key else str(error)
    return (text.strip().splitlines() or [""])[0][:200].rstrip(".")
