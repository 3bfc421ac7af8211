// Keeps what is typed into a form in this browser until it is saved, so that a tab that is closed by mistake loses nothing. Passwords are not
// kept, not even encrypted.

const KEEP_MS = 300;

const notice = document.querySelector("[data-keep]");
const form = notice.closest("form");
const key = `unsaved/${notice.dataset.keep}`;
const base = ["seen_version", "seen_revision"].map((name) => form.elements[name]?.value ?? "").join("/");
let timer;

/** @returns {[string, string][]} the fields that are kept, in the order of the form */
function readFields() {
  const own = ["csrf_token", "seen_version", "seen_revision"];
  return [...new FormData(form)].filter(
    ([name]) => !own.includes(name) && !name.endsWith(":typed") && form.elements[name]?.type !== "password",
  );
}

function keep(extra = {}) {
  clearTimeout(timer);
  localStorage.setItem(key, JSON.stringify({ at: Date.now(), base, fields: readFields(), ...extra }));
}

function readKept(name = key) {
  return JSON.parse(localStorage.getItem(name) ?? "null");
}

/** Give each list as many rows as were kept, and return the fields under the names of those rows. */
function restoreRows(fields) {
  let renamed = fields;
  for (const list of form.querySelectorAll("[data-rows]")) {
    const own = new RegExp(`^${list.dataset.rows}\\.(\\d+)\\.`);
    const kept = [...new Set(fields.map(([name]) => own.exec(name)?.[1]).filter(Boolean))];
    const rows = () => list.querySelectorAll(":scope > [data-row]");
    while (rows().length < kept.length) list.querySelector("[data-add]").click();
    while (rows().length > kept.length) [...rows()].at(-1).remove();
    const places = [...rows()].map((row) => own.exec(row.querySelector("[name]").name)[1]);
    const move = (name) => name.replace(own, (_, index) => `${list.dataset.rows}.${places[kept.indexOf(index)]}.`);
    renamed = renamed.map(([name, value]) => [own.test(name) ? move(name) : name, value]);
  }
  return renamed;
}

function restore(fields) {
  const values = Map.groupBy(restoreRows(fields), ([name]) => name);
  for (const element of form.elements) {
    if (!element.name || element.type === "password" || element.type === "hidden") continue;
    const given = (values.get(element.name) ?? []).map(([, value]) => value);
    if (element.type === "checkbox") element.checked = given.includes(element.value);
    else if (given.length) element.value = given[0];
    element.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

function drop() {
  localStorage.removeItem(key);
  notice.hidden = true;
}

/** Offer what was kept, unless it has been saved or is what the page shows. */
function offer() {
  const kept = readKept();
  if (!kept || "refused" in notice.dataset) return;
  if ((kept.sent && kept.base !== base) || JSON.stringify(kept.fields) === JSON.stringify(readFields())) return drop();
  notice.querySelector("time").textContent = new Date(kept.at).toLocaleString(document.documentElement.lang);
  notice.querySelector("[data-restore]").addEventListener("click", () => {
    restore(kept.fields);
    notice.hidden = true;
    form.querySelector("input:not([type=hidden]), textarea").focus();
  });
  notice.querySelector("[data-drop]").addEventListener("click", drop);
  notice.hidden = false;
}

/** A new agent that was created is kept no longer: its page is another. */
function dropCreated() {
  const created = key.replace(/[^/]+$/, "new");
  if (created !== key && readKept(created)?.sent) localStorage.removeItem(created);
}

dropCreated();
offer();
form.addEventListener("input", ({ isTrusted }) => {
  if (!isTrusted) return;
  clearTimeout(timer);
  timer = setTimeout(keep, KEEP_MS);
});
form.addEventListener("click", ({ target }) => {
  if (target.closest("[data-remove], [data-add]")) timer = setTimeout(keep, KEEP_MS);
});
form.addEventListener("submit", () => keep({ sent: true }));
addEventListener("pagehide", () => {
  if (timer && !readKept()?.sent) keep();
});
