"""Two worlds that differ only in what is hidden: every reply of one must be that of the other."""
