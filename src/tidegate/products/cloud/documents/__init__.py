"""Cloud and SaaS APIs as SQL: provider documents, what their methods take and give. Nothing here
sends a request.

A provider document is an OpenAPI document with the extensions of StackQL's public registry: under
`components/x-stackQL-resources` it names resources, their methods, and the SQL verb of each.
"""
