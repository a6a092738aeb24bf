"""Whether a call may go on. Pure: values in, a verdict out."""
