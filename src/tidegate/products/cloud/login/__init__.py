"""How a request to a provider is signed: tokens, keys, AWS, OAuth."""
