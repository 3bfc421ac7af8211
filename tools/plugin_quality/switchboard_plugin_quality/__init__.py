"""Quality grades of plugins, from rules that a machine reads (docs/plugins/catalog.md)."""

from switchboard_plugin_quality.assessment import Assessment, assess_plugin
from switchboard_plugin_quality.rules import RULES, Grade, Status
from switchboard_plugin_quality.source import SourceError

__all__ = ["RULES", "Assessment", "Grade", "SourceError", "Status", "assess_plugin"]
