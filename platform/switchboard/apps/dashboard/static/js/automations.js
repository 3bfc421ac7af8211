// Changes the builder's rows without reloading the page: the server returns the same page as without this module, and its builder replaces the old one.

const getBuilder = () => document.getElementById("builder");

/** The element to focus after a change: the new row's first field, the button that moved a row, or the list's last button. */
function findNextFocus(builder, change) {
  const [action, list, index] = change.split(":");
  const listElement = builder.querySelector(`[data-list="${list}"]`);
  if (!listElement) return builder.querySelector('[name="trigger_type"]');
  const rows = listElement.querySelectorAll(".builder-row");
  if (action === "add") return rows[rows.length - 1]?.querySelector("input:not([type=hidden]), select, textarea, button");
  if (action === "remove") return listElement.querySelector(`[value="add:${list}"]`);
  const movedRow = rows[Number(index) + (action === "up" ? -1 : 1)];
  return movedRow?.querySelector(`[value^="${action}:"]`) ?? movedRow?.querySelector('[name="change"]');
}

async function applyChange(form, button) {
  const builder = getBuilder();
  builder.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(button.formAction, { method: "POST", body: new URLSearchParams(new FormData(form, button)) });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const newBuilder = page.getElementById("builder");
    if (!response.ok || !newBuilder) throw new Error(String(response.status));
    builder.replaceWith(newBuilder);
    findNextFocus(newBuilder, button.value)?.focus();
  } catch {
    builder.removeAttribute("aria-busy");
    builder.querySelector("[data-trouble]").hidden = false;
  }
}

document.addEventListener("submit", (event) => {
  if (!getBuilder()?.contains(event.target) || event.submitter?.name !== "change") return;
  event.preventDefault();
  applyChange(event.target, event.submitter);
});

function changeTrigger(select) {
  select.form.requestSubmit(getBuilder().querySelector('[value="trigger"]'));
}

document.addEventListener("change", (event) => {
  if (event.target.name === "trigger_type") changeTrigger(event.target);
});

// The trigger may have been chosen before this module ran.
const trigger = getBuilder()?.querySelector('[name="trigger_type"]');
const served = trigger && [...trigger.options].findIndex((option) => option.defaultSelected);
if (trigger && trigger.selectedIndex !== Math.max(served, 0)) changeTrigger(trigger);
