"""A local language model in the browser: it loads, its answer streams, and Cancel stops it and keeps what was found."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.tiny import tiny_config, tiny_tokenizer


@pytest.fixture(scope="module")
def app_with_model(app):
    """The app with a random model in its data folder: it writes nonsense, slowly enough to be stopped."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = app.home / "models" / "scribe"
    tokenizer = tiny_tokenizer()
    config = tiny_config("llama", len(tokenizer))
    config.update({"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 8, "head_dim": 128})
    config.max_position_embeddings = 16_384
    torch.manual_seed(0)
    module = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    # A logit of 0 is never the largest of some hundred: only Cancel or the length limit ends the answer.
    module.lm_head.weight.data[tokenizer.eos_token_id] = 0
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return app


def ask(page, app, model):
    page.goto(app.url)
    expect(page.locator(".answer")).to_be_visible()
    page.get_by_label("Question", exact=True).fill("What does the carbon take away?")
    box = page.get_by_role("combobox", name="Written by")
    box.click()
    page.get_by_role("option", name=model, exact=True).click()
    page.get_by_role("button", name="Ask Shortcut").click()


def test_a_local_model_streams_also_after_a_reload_and_cancel_stops_it(app_with_model, page, look):
    ask(page, app_with_model, "scribe")
    expect(page.locator(".gw-answer")).to_be_visible()
    look(page, "ask_streaming")
    page.reload()  # another session, which finds the run
    expect(page.locator(".gw-answer")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Stopped. The case keeps the finished steps")).to_be_visible()
    expect(page.locator(".card").first).to_be_visible()
