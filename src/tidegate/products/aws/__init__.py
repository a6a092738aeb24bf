"""Secrets of AWS Secrets Manager, and logins by IAM to databases of RDS."""
