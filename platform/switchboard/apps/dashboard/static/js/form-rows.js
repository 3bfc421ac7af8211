// Adds, removes, and moves rows of a form. Without this module, the form has one extra, collapsed row, empty rows are ignored, and
// buttons that move or remove a row send the form.

/**
 * @param {HTMLElement} list an element whose `data-rows` is the prefix of its fields' names; the empty row is in its `details`. A `template`
 *   replaces it as the pattern of a new row.
 */
function enableRows(list) {
  const emptyRow = list.querySelector(":scope > details");
  const pattern = list.querySelector(":scope > template")?.content.firstElementChild ?? emptyRow.querySelector("[data-row]");
  const add = list.querySelector("[data-add]");
  emptyRow.remove();
  add.hidden = false;
  for (const row of list.querySelectorAll("[data-row]")) {
    enableRemoval(row);
    enableMoving(row);
  }

  add.addEventListener("click", () => {
    const row = pattern.cloneNode(true);
    const indexes = [...list.querySelectorAll("[data-row]")].map((listRow) => getRowIndex(listRow, list.dataset.rows));
    renumber(row, list.dataset.rows, 1 + Math.max(-1, ...indexes));
    enableRemoval(row);
    enableMoving(row);
    add.before(row);
    row.querySelector("input:not([type=hidden]), select, textarea").focus();
  });

  function enableRemoval(row) {
    const remove = row.querySelector("[data-remove]");
    remove.hidden = false;
    remove.addEventListener("click", (event) => {
      event.preventDefault();
      row.remove();
      add.focus();
    });
  }

  /** A row's place is the index in its fields' names, so that two rows exchange their indexes. */
  function enableMoving(row) {
    const up = row.querySelector("[data-up]");
    if (!up) return;
    up.addEventListener("click", (event) => {
      event.preventDefault();
      const rowBefore = row.previousElementSibling;
      if (!rowBefore?.matches("[data-row]")) return;
      const indexes = [rowBefore, row].map((listRow) => getRowIndex(listRow, list.dataset.rows));
      rowBefore.before(row);
      renumber(row, list.dataset.rows, indexes[0]);
      renumber(rowBefore, list.dataset.rows, indexes[1]);
      const isFirst = !row.previousElementSibling?.matches("[data-row]");
      (isFirst ? row.querySelector("input:not([type=hidden])") : up).focus();
    });
  }
}

/** @returns {number} a row's index in its fields' names: 2 for `tools.2.name`; 0 for names without an index, such as `days[]` */
function getRowIndex(row, prefix) {
  return Number.parseInt(row.querySelector("[name]").name.slice(prefix.length + 1), 10) || 0;
}

function renumber(row, prefix, index) {
  const ownNames = new RegExp(`(^|[ -])${prefix}\\.\\d+\\.`, "g");
  for (const element of row.querySelectorAll("*")) {
    for (const name of ["id", "name", "for", "aria-describedby"]) {
      const value = element.getAttribute(name);
      if (value) element.setAttribute(name, value.replace(ownNames, `$1${prefix}.${index}.`));
    }
  }
  const legend = row.querySelector("legend");
  if (legend) legend.textContent = legend.textContent.replace(/\d+/, String(index + 1));
}

for (const list of document.querySelectorAll("[data-rows]")) enableRows(list);
