"""`python -m daskscope.cli`, where the console script is not on the path."""

from daskscope.cli import main

main()
