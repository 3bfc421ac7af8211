"""HTTP for all endpoints: credentials, bodies, responses, errors, rate limits, and paging. Knows no resource."""
