"""Who calls: tokens, operators, pairing, OAuth."""
