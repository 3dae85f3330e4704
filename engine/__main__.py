"""`python -m engine COMMAND`: what the pages do, for scripts."""

from engine.commands import main

if __name__ == "__main__":
    main()
