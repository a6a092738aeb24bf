"""Mutation tests of the safety core: small faults are planted one by one, and a test must fail.

`mutants.py` makes the mutants of a module, `coverage_map.py` records which test executes which
line, `trial.py` runs the covering tests of a mutant, `survivors.toml` names the mutants that were
reviewed, and `__main__.py` is the command (`./dev mutate`).
"""
