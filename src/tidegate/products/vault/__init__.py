"""Secrets and leased accounts of OpenBao and Vault."""
