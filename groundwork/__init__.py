"""The installed program. Its own packages (engine, components, pages) lie in `tree/` and not beside other people's."""
