// Rows of a form that are added and taken away. Without this module there is one empty row more, folded up, and a row that is emptied is none.

/**
 * @param {HTMLElement} list an element whose `data-rows` is how its fields' names begin; the empty row is in its `details`. A `template` is
 *   what a new row begins with instead.
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

/** @returns {number} a row's place among its fields' names: of `tools`, `tools.2.name` is 2; 0 where names have no place, as in `days[]` */
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
