"""The building blocks of the pages: a component draws one engine value and computes nothing."""
