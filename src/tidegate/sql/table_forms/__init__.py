"""Tables as forms: what a person fills in, the statements that make it so, and back again."""
