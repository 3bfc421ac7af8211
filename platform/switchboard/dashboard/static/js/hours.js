// Rows of a form that are added and removed without loading the page. Without this module there is always one empty row more.

/** @param {HTMLElement} rows */
function start(rows) {
  const template = rows.querySelector("template");
  const all = () => [...rows.querySelectorAll("[data-row]")];
  let next = all().length;

  const isEmpty = (row) => ![...row.querySelectorAll("input")].some((field) => (field.type === "checkbox" ? field.checked : field.value));
  const prepare = (row) => {
    const remove = row.querySelector("[data-remove-row]");
    remove.hidden = false;
    remove.addEventListener("click", () => {
      row.remove();
      add.focus();
    });
  };

  const add = rows.querySelector("[data-add-row]");
  add.hidden = false;
  add.addEventListener("click", () => {
    const row = template.content.firstElementChild.cloneNode(true);
    for (const field of row.querySelectorAll("*")) {
      for (const name of field.getAttributeNames()) {
        if (field.getAttribute(name).includes("__n__")) field.setAttribute(name, field.getAttribute(name).replace("__n__", String(next)));
      }
    }
    next += 1;
    (all().at(-1) ?? template).after(row);
    prepare(row);
    row.querySelector("input").focus();
  });
  for (const row of all()) isEmpty(row) ? row.remove() : prepare(row);
}

for (const rows of document.querySelectorAll("[data-rows]")) start(rows);

// Whoever asks for opening hours begins with those of an office.
for (const hours of document.querySelectorAll(".hours")) {
  hours.querySelector(":scope > .check input[type=checkbox]").addEventListener("change", (event) => {
    if (event.target.checked && !hours.querySelector(".slot[data-row]")) hours.querySelector("[data-add-row]").click();
  });
}
