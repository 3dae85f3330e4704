"""What the pages are drawn with: a component draws one engine value and computes nothing."""
