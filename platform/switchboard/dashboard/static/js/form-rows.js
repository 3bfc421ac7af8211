// Rows of a form that are added and taken away. Without this module there is one empty row more, folded up, and a row that is emptied is none.

/** @param {HTMLElement} list an element with `data-rows`, whose last row is the empty one */
function take(list) {
  const spare = list.querySelector("details");
  const pattern = spare.querySelector("[data-row]");
  const add = list.querySelector("[data-add]");
  spare.remove();
  add.hidden = false;
  for (const row of list.querySelectorAll("[data-row]")) arm(row);

  add.addEventListener("click", () => {
    const row = pattern.cloneNode(true);
    const next = 1 + Math.max(-1, ...[...list.querySelectorAll("[data-row]")].map(placeOf));
    renumber(row, list.dataset.rows, next);
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

/** @returns {number} a row's place among its fields' names: `tools.2.name` is 2 */
function placeOf(row) {
  return Number(row.querySelector("[name]").name.split(".")[1]);
}

function renumber(row, prefix, place) {
  const own = new RegExp(`(^|[ -])${prefix}\\.\\d+\\.`, "g");
  for (const part of row.querySelectorAll("*")) {
    for (const name of ["id", "name", "for", "aria-describedby"]) {
      const value = part.getAttribute(name);
      if (value) part.setAttribute(name, value.replace(own, `$1${prefix}.${place}.`));
    }
  }
  row.querySelector("legend").textContent = row.querySelector("legend").textContent.replace(/\d+/, String(place + 1));
}

for (const list of document.querySelectorAll("[data-rows]")) take(list);
