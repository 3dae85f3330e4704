"""Train the bundled weights, or your own. This package imports the engine; nothing imports it."""
