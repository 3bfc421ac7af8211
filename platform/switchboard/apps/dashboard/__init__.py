"""The dashboard: server-rendered pages, with a module and a template folder for each area. Pages call services, as the
API's routes do.
"""
