"""HTTP as every endpoint shares it: credentials, bodies, answers, errors, limits, paging. Knows no resource."""
