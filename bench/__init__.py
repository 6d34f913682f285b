"""What daskscope costs, measured against its budgets and its peers: `python -m bench`, `make bench`.

Figures are instructions, CPU time, counts, bytes, or ratios against a peer in the same run; never wall time, which says
more about the machine than about the code.
"""
