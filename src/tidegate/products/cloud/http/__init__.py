"""One request to a provider, and its reply, as values: paging, templates, formats of bodies."""
