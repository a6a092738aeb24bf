"""A person's word on a call: questions, answers, grants that are used once."""
