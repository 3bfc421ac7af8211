// Adds and removes rows of a form. Without this module, the form has one extra, collapsed row, and empty rows are ignored.

/**
 * @param {HTMLElement} list an element whose `data-rows` is the prefix of its fields' names; the empty row is in its `details`. A `template`
 *   replaces it as the pattern of a new row.
 */
function take(list) {
  const spare = list.querySelector(":scope > details");
  const pattern = list.querySelector(":scope > template")?.content.firstElementChild ?? spare.querySelector("[data-row]");
  const add = list.querySelector("[data-add]");
  spare.remove();
  add.hidden = false;
  for (const row of list.querySelectorAll("[data-row]")) arm(row);

  add.addEventListener("click", () => {
    const row = pattern.cloneNode(true);
    const places = [...list.querySelectorAll("[data-row]")].map((one) => placeOf(one, list.dataset.rows));
    renumber(row, list.dataset.rows, 1 + Math.max(-1, ...places));
    arm(row);
    add.before(row);
    row.querySelector("input:not([type=hidden]), select, textarea").focus();
  });

  function arm(row) {
    const remove = row.querySelector("[data-remove]");
    remove.hidden = false;
    remove.addEventListener("click", () => {
      row.remove();
      add.focus();
    });
  }
}

/** @returns {number} a row's index in its fields' names: 2 for `tools.2.name`; 0 for names without an index, such as `days[]` */
function placeOf(row, prefix) {
  return Number.parseInt(row.querySelector("[name]").name.slice(prefix.length + 1), 10) || 0;
}

function renumber(row, prefix, place) {
  const own = new RegExp(`(^|[ -])${prefix}\\.\\d+\\.`, "g");
  for (const part of row.querySelectorAll("*")) {
    for (const name of ["id", "name", "for", "aria-describedby"]) {
      const value = part.getAttribute(name);
      if (value) part.setAttribute(name, value.replace(own, `$1${prefix}.${place}.`));
    }
  }
  const legend = row.querySelector("legend");
  if (legend) legend.textContent = legend.textContent.replace(/\d+/, String(place + 1));
}

for (const list of document.querySelectorAll("[data-rows]")) take(list);
