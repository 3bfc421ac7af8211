"""The dashboard: pages rendered here, a file and a template folder for each part; they call services, as the API's routes do."""
