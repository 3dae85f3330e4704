"""What trains the weights that ship and those of your own: it imports the engine, and nothing imports it."""
