"""Light and dark mode differ in colors only, which is why axe-core runs only its rules of colors in dark mode
(`tests/fixtures/dashboard.py`).
"""

import re

from tests.fixtures.servers import REPOSITORY

COLOR = r"#[0-9a-f]{3,8}"
SCHEME_COLORS = re.compile(rf"light-dark\({COLOR}, {COLOR}\)")
THEME_RULES = re.compile(r"\[data-theme[^{]*\{([^}]*)\}")
SWITCH = "platform/switchboard/apps/dashboard/static/js/main.js"
"""Its button replaces one theme by the other."""


def test_styles_differ_between_schemes_in_colors_only() -> None:
    styles = sorted((REPOSITORY / "platform").rglob("*.css"))
    assert len(styles) > 15
    for path in styles:
        text = path.read_text()
        assert "prefers-color-scheme" not in text, path
        assert "light-dark(" not in SCHEME_COLORS.sub("", text), f"{path}: light-dark() has two colors"
        for declarations in THEME_RULES.findall(text):
            assert re.fullmatch(r" color-scheme: (light|dark); ", declarations), f"{path}: {declarations}"


def test_no_page_or_script_depends_on_the_scheme() -> None:
    pages = [path for ending in ("js", "html") for path in sorted((REPOSITORY / "platform").rglob(f"*.{ending}"))]
    asking = [path for path in pages if re.search(r"prefers-color-scheme|dataset\.theme", path.read_text())]
    assert [str(path.relative_to(REPOSITORY)) for path in asking] == [SWITCH]
    script = (REPOSITORY / SWITCH).read_text()
    assert (script.count("prefers-color-scheme"), script.count("dataset.theme")) == (1, 4)
