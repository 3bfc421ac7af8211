// Tables as cards on narrow screens: each cell gets the text of its column's heading, which the style sheet shows before it.
// The style sheet takes the display of tables away, and with it their meaning, so the roles are set here.
const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TH: "columnheader", TD: "cell" };

/**
 * Prepare every table of a list within an element.
 * @param {ParentNode} within
 */
export function labelCells(within) {
  for (const table of within.querySelectorAll(".table-box > table")) {
    const headings = [...table.querySelectorAll(":scope > thead th")].map((heading) => heading.textContent.trim());
    if (!headings.length || table.querySelector(":scope > tbody > tr > th")) continue;
    for (const element of [table, ...table.querySelectorAll(":scope > *, :scope > * > tr, :scope > * > tr > *")]) {
      if (element.tagName in ROLES) element.setAttribute("role", ROLES[element.tagName]);
    }
    for (const row of table.querySelectorAll(":scope > tbody > tr")) {
      if (row.cells.length === headings.length) headings.forEach((heading, place) => (row.cells[place].dataset.label = heading));
    }
    table.classList.add("cards");
  }
}
