"""Whether a call may go on, and within which budgets. Pure: values in, a verdict out."""
