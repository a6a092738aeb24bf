"""Budgets of calls, rows, bytes and database seconds."""
