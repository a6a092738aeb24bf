"""Messages to a server of the operator's about questions that wait for a person."""
