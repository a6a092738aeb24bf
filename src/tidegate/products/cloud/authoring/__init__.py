"""Provider documents that are made from OpenAPI documents, and what is wrong with one."""
