"""What a text would do to a database, judged by the text alone. Pure: no I/O, no clock.

`judge` reads from top to bottom: scan (raw text), forms (by the first word), phrases (by words),
plain and parse (by grammar), effects (by tree). Opinions are joined; the highest effect wins.
"""
