"""One package per resource of the API, with its tables, rules, endpoints, and jobs."""
