"""Quality grades of plugins, from rules that a machine reads (docs/plugins/catalog.md)."""

from switchboard.apps.plugin_quality.assessment import Assessment, assess_plugin
from switchboard.apps.plugin_quality.rules import RULES, Grade, Status
from switchboard.apps.plugin_quality.source import SourceError

__all__ = ["RULES", "Assessment", "Grade", "SourceError", "Status", "assess_plugin"]
