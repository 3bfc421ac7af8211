"""HTML forms: parse a submitted form into an API model, and show the form again with its errors."""
